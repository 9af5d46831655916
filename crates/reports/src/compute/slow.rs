//! The figures that are computed every two seconds: walls, anomalies, the volume profile and the health score.

use std::borrow::Cow;

use rust_decimal::prelude::ToPrimitive;

use super::observation::Observation;
use super::trades::Traded;
use super::{FLOW_SECS, PROFILE_SECS, ten_places};
use crate::markdown::word;
use crate::model::{Anomaly, Component, Health, Liquidity, Report, Section, Sections, Vacuum, VolumeProfile, Wall};
use tribune_analytics as analytics;
use tribune_analytics::{
    Anomalies, BAND_BPS, Check, HealthInputs, Histogram, RowWidth, Touch, Unavailable, Walls, band, quotient, vacuums,
    volume_profile,
};
use tribune_binance::Price;

/// Every price is a multiple of this.
const SMALLEST_TICK: Price = Price::from_units(1);

/// A report with nothing but these figures and their sections.
pub(super) fn compute(observed: &Observation<'_>) -> Report {
    let watch = &observed.inputs.published.watch;
    let checked = watch.anomalies(observed.inputs.exchange_now, Vec::new());
    let mut report = Report::default();
    let (liquidity, sections) = (&mut report.liquidity, &mut report.sections);
    (liquidity.walls, sections.walls) = of_book(observed, walls(&watch.walls(), observed));
    (report.anomalies, sections.anomalies) = of_book(observed, anomalies(&checked));
    (report.health, sections.health) = of_book(observed, health(observed, &checked));
    match Traded::of(observed, PROFILE_SECS) {
        Ok(traded) => profile(&traded, observed, liquidity, sections),
        Err(reason) => {
            sections.volume_profile = observed.section(None, observed.age_ms(), Some(reason));
            sections.vacuums = sections.volume_profile.clone();
        }
    }
    report
}

/// A value, with a reason if something in it is missing; or why there is none.
type Outcome<T> = Result<(T, Option<String>), String>;

fn of_book<T>(observed: &Observation<'_>, outcome: Outcome<T>) -> (Option<T>, Section) {
    let (value, reason) = match outcome {
        Ok((value, reason)) => (Some(value), reason),
        Err(reason) => (None, Some(reason)),
    };
    (value, observed.book_section(reason))
}

/// An empty list means no walls, so there is none until the book has been watched long enough to see one.
fn walls(watched: &Walls, observed: &Observation<'_>) -> Outcome<Vec<Wall>> {
    let sides = [watched.bid_median_base, watched.ask_median_base];
    if sides == [None, None] {
        let few = || watched.reason.as_ref().map_or_else(String::new, ToString::to_string);
        return Err(observed.trouble().unwrap_or_else(few));
    }
    let persistence = watched.rules.persistence_ms;
    if watched.watched_ms < persistence {
        let need_secs = u32::try_from(persistence / 1000).unwrap_or(u32::MAX);
        return Err(Unavailable::TooShort { need_secs }.to_string());
    }
    let one_side = watched.reason.as_ref().map(|reason| {
        let side = if sides[0].is_none() { "bids" } else { "asks" };
        format!("{side} were not checked: {reason}")
    });
    let wall = |wall: &analytics::Wall| Wall {
        side: wall.side,
        price: wall.price.decimal(),
        qty: wall.quantity_base.decimal(),
        severity: wall.severity,
    };
    Ok((watched.walls.iter().map(wall).collect(), one_side))
}

/// The anomalies found; an error if no check could be made.
fn anomalies(all: &Anomalies) -> Outcome<Vec<Anomaly>> {
    let missing: Vec<String> = all.checks.iter().filter_map(not_made).collect();
    let (count, checks) = (missing.len(), all.checks.len());
    let reason =
        (count > 0).then(|| format!("{count} of {checks} checks could not be made yet: {}", missing.join(", ")));
    match reason {
        Some(reason) if all.checked == 0 => Err(reason),
        reason => Ok((all.checks.iter().filter_map(anomaly).collect(), reason)),
    }
}

fn not_made(check: &Check) -> Option<String> {
    let reason = check.reason.as_ref().filter(|_| check.found.is_none())?;
    Some(format!("{} ({reason})", word(&check.kind)))
}

fn anomaly(check: &Check) -> Option<Anomaly> {
    let severity = check.severity.filter(|_| check.found == Some(true))?;
    let figure = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {value}"));
    let figures =
        [figure("value", check.value), figure("usual", check.baseline), figure("found from", check.threshold)];
    let window = check.window.as_ref().map(|window| format!("over {window}"));
    let words: Vec<String> = figures.into_iter().flatten().chain(window).collect();
    Some(Anomaly { kind: word(&check.kind), severity, note: format!("{}; {}", words.join(", "), check.note) })
}

/// Without a book the score would only measure its age.
fn health(observed: &Observation<'_>, anomalies: &Anomalies) -> Outcome<Health> {
    let Some(view) = &observed.view else {
        return Err(observed.trouble().unwrap_or_else(|| "the book is not known".to_owned()));
    };
    let spread = Touch::of(&view.depth).and_then(|touch| {
        let spread = touch.spread_bps().as_ref().and_then(ToPrimitive::to_f64);
        spread.ok_or(Unavailable::TooLarge)
    });
    let near = band(&view.depth, BAND_BPS);
    let flow = Traded::of(observed, FLOW_SECS)
        .map_err(|_| Unavailable::Unknown("the trade flow"))
        .and_then(|traded| traded.flow());
    let score = analytics::health(&HealthInputs {
        spread_bps: spread,
        band: near.as_ref().map_err(Clone::clone),
        quote_volume_24h: observed.inputs.day.map(|day| day.quote_volume),
        flow: flow.as_ref().map_err(Clone::clone),
        flow_secs: FLOW_SECS,
        anomalies,
        age_ms: observed.age_ms(),
    });
    let parts = &score.components;
    let missing = parts.iter().filter(|part| part.score.is_none()).count();
    let missing = (missing > 0).then(|| format!("{missing} of {} components have no input", parts.len()));
    let noted = parts.iter().filter_map(|part| Some(format!("{}: {}", part.name, part.note.as_ref()?)));
    let incomplete = missing.into_iter().chain(noted).reduce(|all, one| format!("{all}; {one}"));
    let reason = score.reason.map(|reason| reason.to_string()).or(incomplete);
    let health = Health {
        score: score.score,
        weights_used: score.weights_used,
        components: score.components.into_iter().map(component).collect(),
        note: score.note.to_owned(),
    };
    Ok((health, reason))
}

fn component(part: analytics::Component) -> Component {
    Component {
        name: part.name.to_string(),
        input: part.input,
        input_unit: part.input_unit.into_owned(),
        score: part.score,
        weight: part.weight,
        contribution: part.contribution,
        mapping: part.mapping.to_string(),
        reason: part.reason.map(|reason| reason.to_string()).or_else(|| part.note.map(Cow::into_owned)),
    }
}

/// The volume profile and its vacuums, from one histogram.
fn profile(traded: &Traded, observed: &Observation<'_>, liquidity: &mut Liquidity, sections: &mut Sections) {
    let tick = observed.inputs.symbol.tick_size.unwrap_or(SMALLEST_TICK);
    let (window, seen_from) = (traded.window, traded.seen_from);
    let histogram = Histogram::of_trades(traded.recent.trades(), window, seen_from, RowWidth::FromTick(tick));
    let histogram = histogram.as_ref().map_err(Clone::clone);
    let profile = histogram.clone().and_then(volume_profile);
    let empty = histogram.and_then(vacuums);
    // A profile of a few seconds must not pass for one of 15 minutes.
    let known_ms = window.end_ms.saturating_sub(seen_from);
    let known_secs = known_ms as f64 / 1000.0;
    let partly = (known_ms < window.millis())
        .then(|| format!("of the {PROFILE_SECS} s only the last {known_secs:.0} s are known"));
    let section = |reason: Option<&Unavailable>| {
        let reason = reason.map(ToString::to_string).or_else(|| partly.clone());
        traded.section(observed, reason)
    };
    sections.volume_profile = section(profile.as_ref().err());
    sections.vacuums = section(empty.as_ref().err());
    // The share of the window whose trades are all known.
    let known = known_ms.clamp(0, window.millis());
    let coverage = quotient(known.into(), window.millis().into()).and_then(ten_places);
    liquidity.volume_profile = profile.ok().map(|made| VolumeProfile {
        poc: made.poc,
        vah: made.vah.decimal(),
        val: made.val.decimal(),
        window_sec: PROFILE_SECS,
        window_end_ms: window.end_ms,
        trade_count: made.trades,
        coverage,
    });
    let vacuum = |found: &analytics::Vacuum| Vacuum {
        from: found.from.decimal(),
        to: found.to.decimal(),
        severity: found.severity,
    };
    liquidity.vacuums = empty.ok().map(|made| made.vacuums.iter().map(vacuum).collect());
}
