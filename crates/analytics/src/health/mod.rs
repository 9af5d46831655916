//! One score with published weights: a convention, to compare a market with itself and with others.
//!
//! The caller chooses the window of the flow, and its component names it. Anomalies count the checks that could be made.
//!
//! A component without input is null, with a reason; the score uses the weights of the others. The score is null, with a
//! reason, if these are less than half of all weights, or if the data is so old that freshness scores 0. It is complete if
//! every component has its whole input: not if a check could not be made, or a band is known in part.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::anomalies::Anomalies;
use crate::depth::Band;
use crate::figure::{Severity, Standing, Unavailable, quotient, significant};
use crate::flow::TradeFlow;
use rust_decimal::prelude::ToPrimitive;
use tribune_binance::Notional;

/// Half the width of the band of depth and balance.
pub const BAND_BPS: u32 = 25;
/// The fewest trades that have a balance.
pub const MIN_TRADES: u64 = 10;
/// The smallest sum of weights that makes a score.
const MIN_WEIGHT: f64 = 0.5;
/// Data this old says nothing about the present.
const MAX_AGE_MS: u64 = 5_000;

/// The inputs of the score; an unknown one is an error with its reason.
#[derive(Debug, Clone)]
pub struct HealthInputs<'a> {
    pub spread_bps: Result<f64, Unavailable>,
    /// Of ±[`BAND_BPS`].
    pub band: Result<&'a Band, Unavailable>,
    pub quote_volume_24h: Option<Notional>,
    pub flow: Result<&'a TradeFlow, Unavailable>,
    pub flow_secs: u32,
    pub anomalies: &'a Anomalies,
    pub age_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Component {
    pub name: &'static str,
    pub input: Option<f64>,
    pub input_unit: Cow<'static, str>,
    /// From 0 to 100.
    pub score: Option<f64>,
    pub weight: f64,
    /// Its part of the score: weight times score, over the weights used. They add up to the score.
    pub contribution: Option<f64>,
    pub mapping: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    /// What its input lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Cow<'static, str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Health {
    /// From 0 to 100, with one place.
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    /// The sum of the weights that the score is taken over; 1 if every component has an input.
    pub weights_used: f64,
    /// Whether every component has its whole input.
    pub complete: bool,
    pub components: Vec<Component>,
    pub standing: Standing,
    pub note: &'static str,
}

pub fn health(inputs: &HealthInputs<'_>) -> Health {
    let mut components =
        vec![spread(inputs), depth(inputs), balance(inputs), flow(inputs), anomalies(inputs), freshness(inputs)];
    let scored = components.iter().filter(|component| component.score.is_some());
    let weights_used: f64 = scored.map(|component| component.weight).sum();
    let reason = unscored(inputs, weights_used);
    for component in components.iter_mut().filter(|_| reason.is_none()) {
        component.contribution = component.score.map(|score| places(score * component.weight / weights_used, 2));
    }
    let weighted = components.iter().filter_map(|component| Some(component.score? * component.weight));
    let score = weighted.sum::<f64>() / weights_used;
    Health {
        score: reason.is_none().then(|| places(score.clamp(0.0, 100.0), 1)),
        reason,
        weights_used: places(weights_used, 2),
        complete: components.iter().all(|component| component.score.is_some() && component.note.is_none()),
        components,
        standing: Standing::Convention,
        note: "weights and mappings are chosen, not measured; a score is not advice",
    }
}

fn unscored(inputs: &HealthInputs<'_>, weights_used: f64) -> Option<Unavailable> {
    if inputs.age_ms >= MAX_AGE_MS {
        return Some(Unavailable::TooOld { secs: inputs.age_ms / 1_000 });
    }
    // Float sums such as 0.2 + 0.15 are off in their last digit.
    let percent = |weight: f64| (weight * 100.0).round() as u32;
    let (have_pct, need_pct) = (percent(weights_used), percent(MIN_WEIGHT));
    (have_pct < need_pct).then_some(Unavailable::TooLittleWeight { have_pct, need_pct })
}

fn spread(inputs: &HealthInputs<'_>) -> Component {
    Component::of(
        ("spread", 0.20, "bps of mid".into()),
        "100 at 1 bps or less, 0 at 50 or more, logarithmic between",
        inputs.spread_bps.clone(),
        |bps| 100.0 - logarithmic(bps, 1.0, 50.0),
    )
}

fn depth(inputs: &HealthInputs<'_>) -> Component {
    let share = inputs.band.clone().and_then(|band| {
        let volume = inputs.quote_volume_24h.ok_or(Unavailable::Unknown("the 24 h volume"))?;
        let share = quotient(band.smaller_side().units(), volume.units()).ok_or(Unavailable::NoTrades)?;
        Ok(share.to_f64().ok_or(Unavailable::TooLarge)? * 10_000.0)
    });
    let unit = "thinner side within 25 bps, in bps of 24 h quote volume";
    Component::of(
        ("depth", 0.25, unit.into()),
        "100 at 10 or more, 0 at 0.1 or less, logarithmic between",
        share,
        |bps| logarithmic(bps, 0.1, 10.0),
    )
    .lacking(inputs.band.as_ref().is_ok_and(|band| !band.complete), || "the band is not complete: a lower bound".into())
}

fn balance(inputs: &HealthInputs<'_>) -> Component {
    let imbalance = inputs.band.clone().and_then(|band| {
        let reason = || band.reason.clone().unwrap_or(Unavailable::EmptyBand);
        band.imbalance.map(f64::abs).ok_or_else(reason)
    });
    Component::of(
        ("balance", 0.15, "absolute imbalance within 25 bps, 0 to 1".into()),
        "100 at 0, 0 at 1, linear",
        imbalance,
        |imbalance| 100.0 * (1.0 - imbalance),
    )
}

fn flow(inputs: &HealthInputs<'_>) -> Component {
    let one_sided = inputs.flow.clone().and_then(|flow| {
        if flow.trades < MIN_TRADES {
            let have = usize::try_from(flow.trades).unwrap_or(usize::MAX);
            return Err(Unavailable::TooFew { what: "trades", have, need: MIN_TRADES as usize });
        }
        flow.aggressor_imbalance.map(f64::abs).ok_or(Unavailable::NoTrades)
    });
    let unit = format!("absolute aggressor imbalance of the last {} s, 0 to 1", inputs.flow_secs);
    Component::of(("flow", 0.15, unit.into()), "100 at 0, 0 at 1, linear", one_sided, |imbalance| {
        100.0 * (1.0 - imbalance)
    })
    .lacking(inputs.flow.as_ref().is_ok_and(|flow| !flow.complete), || "not every trade of the window was seen".into())
}

fn anomalies(inputs: &HealthInputs<'_>) -> Component {
    let (made, all) = (inputs.anomalies.checked, inputs.anomalies.checks.len());
    let severities = inputs.anomalies.checks.iter().filter_map(|check| check.severity);
    let points = severities.map(|severity| match severity {
        Severity::Low => 15.0,
        Severity::Medium => 35.0,
        Severity::High => 60.0,
    });
    let unit = "points of what was found: low 15, medium 35, high 60";
    Component::of(
        ("anomalies", 0.15, unit.into()),
        "100 less the points, not below 0",
        (made > 0).then(|| points.sum()).ok_or(Unavailable::Unknown("the symbol's past")),
        |points| 100.0 - points,
    )
    .lacking(made < all, || format!("of {made} of {all} checks: the others could not be made").into())
}

fn freshness(inputs: &HealthInputs<'_>) -> Component {
    Component::of(
        ("freshness", 0.10, "age of the data in ms".into()),
        "100 at 1,000 or less, 0 at 5,000 or more, linear between",
        Ok(inputs.age_ms as f64),
        |age| 100.0 * (5_000.0 - age) / 4_000.0,
    )
}

impl Component {
    fn of(
        (name, weight, input_unit): (&'static str, f64, Cow<'static, str>),
        mapping: &'static str,
        input: Result<f64, Unavailable>,
        map: impl Fn(f64) -> f64,
    ) -> Self {
        // Inputs are never negative or infinite; if one is, it is not scored.
        let input = input.and_then(|input| {
            let sane = input.is_finite() && input >= 0.0;
            if sane { Ok(input) } else { Err(Unavailable::TooLarge) }
        });
        Self {
            name,
            input: input.as_ref().ok().copied().and_then(significant),
            input_unit,
            score: input.as_ref().ok().map(|input| places(map(*input).clamp(0.0, 100.0), 1)),
            weight,
            contribution: None,
            mapping,
            reason: input.err(),
            note: None,
        }
    }

    /// Adds a note if the input is incomplete.
    fn lacking(mut self, is_so: bool, note: impl FnOnce() -> Cow<'static, str>) -> Self {
        self.note = (is_so && self.score.is_some()).then(note);
        self
    }
}

/// 0 at `low`, 100 at `high`, logarithmic between, clamped.
fn logarithmic(value: f64, low: f64, high: f64) -> f64 {
    100.0 * (value.clamp(low, high) / low).ln() / (high / low).ln()
}

fn places(value: f64, places: i32) -> f64 {
    let scale = 10f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests;
