//! What is computed every two seconds: hints of the watch, the profile, and the health score.

use std::borrow::Cow;

use rust_decimal::prelude::ToPrimitive;
use serde_json::Value;

use super::sight::Sight;
use super::trades::Traded;
use super::{FLOW_SECS, PROFILE_SECS, Slow, ten_places};
use crate::analytics::anomalies::{Anomalies, AnomalyKind, Check};
use crate::analytics::depth::band;
use crate::analytics::figure::quotient;
use crate::analytics::health::{self, BAND_BPS, HealthInputs};
use crate::analytics::profile::{self, Histogram, RowWidth, volume_profile};
use crate::analytics::quotes::Touch;
use crate::analytics::vacuums::{self, DEFAULT_THRESHOLD_PCT, vacuums};
use crate::analytics::walls::{self, Walls};
use crate::analytics::{Unavailable, Window};
use crate::model::Millis;
use crate::number::Price;
use crate::report::model::{Anomaly, Component, Health, Section, Vacuum, VolumeProfile, Wall};

/// Prices are multiples of this at least.
const SMALLEST_TICK: Price = Price::from_units(1);

pub(super) fn computed(sight: &Sight<'_>) -> Slow {
    let watch = &sight.inputs.published.watch;
    let checked = watch.anomalies(sight.inputs.exchange_now, Vec::new());
    let (walls, walls_section) = told(sight, walls(&watch.walls(), sight));
    let (anomalies, anomalies_section) = told(sight, anomalies(&checked));
    let (health, health_section) = told(sight, health(sight, &checked));
    let profile = Profile::of(sight);
    Slow {
        computed: Some(sight.inputs.now.monotonic),
        walls,
        vacuums: profile.vacuums,
        volume_profile: profile.volume_profile,
        anomalies,
        health,
        walls_section,
        vacuums_section: profile.vacuums_section,
        volume_profile_section: profile.volume_profile_section,
        anomalies_section,
        health_section,
    }
}

/// What there is, and what is to be said of it; or why there is nothing.
type Told<T> = Result<(T, Option<String>), String>;

fn told<T>(sight: &Sight<'_>, told: Told<T>) -> (Option<T>, Section) {
    let (value, reason) = match told {
        Ok((value, reason)) => (Some(value), reason),
        Err(reason) => (None, Some(reason)),
    };
    (value, sight.book_section(reason))
}

/// No walls are an empty list only if any could have been seen: a wall stays for a while.
fn walls(watched: &Walls, sight: &Sight<'_>) -> Told<Vec<Wall>> {
    let sides = [watched.bid_median_base, watched.ask_median_base];
    if sides == [None, None] {
        let few = || watched.reason.map_or_else(String::new, |reason| reason.to_string());
        return Err(sight.trouble().unwrap_or_else(few));
    }
    let persistence = watched.rules.persistence_ms;
    if watched.watched_ms < persistence {
        let need_secs = u32::try_from(persistence / 1000).unwrap_or(u32::MAX);
        return Err(Unavailable::TooShort { need_secs }.to_string());
    }
    let one_side = watched.reason.map(|reason| {
        let side = if sides[0].is_none() { "bids" } else { "asks" };
        format!("{side} could not be looked at: {reason}")
    });
    Ok((watched.walls.iter().map(wall).collect(), one_side))
}

fn wall(wall: &walls::Wall) -> Wall {
    Wall {
        side: wall.side,
        price: wall.price.decimal(),
        qty: wall.quantity_base.decimal(),
        severity: wall.severity,
    }
}

/// What was found; nothing if no check could be made.
fn anomalies(all: &Anomalies) -> Told<Vec<Anomaly>> {
    let missing: Vec<String> = all.checks.iter().filter_map(not_made).collect();
    let reason = (!missing.is_empty()).then(|| {
        format!(
            "{} of {} checks could not be made yet: {}",
            missing.len(),
            all.checks.len(),
            missing.join(", ")
        )
    });
    match reason {
        Some(reason) if all.checked == 0 => Err(reason),
        reason => Ok((all.checks.iter().filter_map(anomaly).collect(), reason)),
    }
}

fn not_made(check: &Check) -> Option<String> {
    let reason = check.reason.filter(|_| check.found.is_none())?;
    Some(format!("{} ({reason})", name(check.kind)))
}

fn anomaly(check: &Check) -> Option<Anomaly> {
    let severity = check.severity.filter(|_| check.found == Some(true))?;
    let figure = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {value}"));
    let figures = [
        figure("value", check.value),
        figure("usual", check.baseline),
        figure("found from", check.threshold),
    ];
    let window = check.window.as_ref().map(|window| format!("over {window}"));
    let told: Vec<String> = figures.into_iter().flatten().chain(window).collect();
    Some(Anomaly {
        kind: name(check.kind),
        severity,
        note: format!("{}; {}", told.join(", "), check.note),
    })
}

/// As it is written in answers.
fn name(kind: AnomalyKind) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(name)) => name,
        _ => format!("{kind:?}"),
    }
}

/// Without a book there would be nothing in the score but the age of that.
fn health(sight: &Sight<'_>, anomalies: &Anomalies) -> Told<Health> {
    let Some(view) = &sight.view else {
        return Err(sight.trouble().unwrap_or_else(|| "the book is not known".to_owned()));
    };
    let spread = Touch::of(&view.depth).and_then(|touch| {
        let spread = touch.spread_bps().as_ref().and_then(ToPrimitive::to_f64);
        spread.ok_or(Unavailable::TooLarge)
    });
    let near = band(&view.depth, BAND_BPS);
    let flow = Traded::of(sight, FLOW_SECS)
        .map_err(|_| Unavailable::Unknown("the trade flow"))
        .and_then(|traded| traded.flow());
    let score = health::health(&HealthInputs {
        spread_bps: spread,
        band: near.as_ref().map_err(|reason| *reason),
        quote_volume_24h: sight.inputs.day.map(|day| day.quote_volume),
        flow: flow.as_ref().map_err(|reason| *reason),
        flow_secs: FLOW_SECS,
        anomalies: Some(anomalies),
        age_ms: Some(sight.age_ms()),
    });
    let missing = score.components.iter().filter(|part| part.score.is_none()).count();
    let partly = score
        .components
        .iter()
        .filter_map(|part| Some((part.name, part.note.as_ref()?)));
    let partly: Vec<String> = partly.map(|(name, note)| format!("{name}: {note}")).collect();
    let missing = (missing > 0).then(|| format!("{missing} of {} components have no input", score.components.len()));
    let incomplete = missing
        .into_iter()
        .chain(partly)
        .reduce(|all, one| format!("{all}; {one}"));
    let reason = score.reason.map(|reason| reason.to_string()).or(incomplete);
    let health = Health {
        score: score.score,
        weights_used: score.weights_used,
        components: score.components.into_iter().map(component).collect(),
        note: score.note.to_owned(),
    };
    Ok((health, reason))
}

fn component(part: health::Component) -> Component {
    Component {
        name: part.name.to_owned(),
        input: part.input,
        input_unit: part.input_unit.into_owned(),
        score: part.score,
        weight: part.weight,
        contribution: part.contribution,
        mapping: part.mapping.to_owned(),
        reason: part
            .reason
            .map(|reason| reason.to_string())
            .or_else(|| part.note.map(Cow::into_owned)),
    }
}

/// Both come of one histogram.
#[derive(Default)]
struct Profile {
    volume_profile: Option<VolumeProfile>,
    volume_profile_section: Section,
    vacuums: Option<Vec<Vacuum>>,
    vacuums_section: Section,
}

impl Profile {
    fn of(sight: &Sight<'_>) -> Self {
        let traded = match Traded::of(sight, PROFILE_SECS) {
            Ok(traded) => traded,
            Err(reason) => {
                let section = sight.section(None, sight.age_ms(), Some(reason));
                return Self {
                    volume_profile_section: section.clone(),
                    vacuums_section: section,
                    ..Self::default()
                };
            }
        };
        let tick = sight.inputs.symbol.tick_size.unwrap_or(SMALLEST_TICK);
        let trades = Histogram::of_trades(
            traded.recent.trades(),
            traded.window,
            traded.seen_from,
            RowWidth::FromTick(tick),
        );
        let profile = trades.as_ref().map_err(|reason| *reason).and_then(volume_profile);
        let empty = trades
            .as_ref()
            .map_err(|reason| *reason)
            .and_then(|trades| vacuums(trades, DEFAULT_THRESHOLD_PCT));
        // A profile of seconds is no profile of a quarter of an hour.
        let known_ms = traded.window.end_ms.saturating_sub(traded.seen_from);
        let partly = (known_ms < traded.window.millis()).then(|| {
            format!(
                "of the {PROFILE_SECS} s only the last {:.0} s are known",
                known_ms as f64 / 1000.0
            )
        });
        let section = |reason: Option<Unavailable>| {
            let reason = reason.map(|reason| reason.to_string()).or_else(|| partly.clone());
            traded.section(sight, reason)
        };
        Self {
            volume_profile_section: section(profile.as_ref().err().copied()),
            vacuums_section: section(empty.as_ref().err().copied()),
            volume_profile: profile.ok().map(|made| of_profile(&made, traded.seen_from)),
            vacuums: empty.ok().map(|made| made.vacuums.iter().map(vacuum).collect()),
        }
    }
}

fn of_profile(made: &profile::VolumeProfile, seen_from: Millis) -> VolumeProfile {
    VolumeProfile {
        poc: made.poc,
        vah: made.vah.decimal(),
        val: made.val.decimal(),
        window_sec: PROFILE_SECS,
        window_end_ms: made.window.end_ms,
        trade_count: made.trades,
        coverage: coverage(made.window, seen_from),
    }
}

/// The share of the window of which all trades are known.
fn coverage(window: Window, seen_from: Millis) -> Option<f64> {
    let known = window.end_ms.saturating_sub(seen_from).clamp(0, window.millis());
    ten_places(quotient(known.into(), window.millis().into())?)
}

fn vacuum(found: &vacuums::Vacuum) -> Vacuum {
    Vacuum {
        from: found.from.decimal(),
        to: found.to.decimal(),
        severity: found.severity,
    }
}
