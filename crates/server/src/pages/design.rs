//! `/design`: colours, type and parts of all pages, for developers. Its figures are samples.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use minijinja::{Value, context};
use tribune_core::Links;
use tribune_page::{Badge, Tone};
use tribune_page::{badge, board, regions, sample};

use crate::response::page;
use crate::service::Service;

const TONES: [(&str, Tone, &str); 7] = [
    ("SIMULATED", Tone::Simulated, "simulated data"),
    ("cited", Tone::Plain, "as it was cited"),
    ("ready", Tone::Good, "the source answers"),
    ("degraded", Tone::Warning, "some data is missing"),
    ("not ready", Tone::Bad, "the source does not answer"),
    ("buy", Tone::Up, "takes from the asks"),
    ("sell", Tone::Down, "takes from the bids"),
];

pub(crate) async fn design(State(service): State<Arc<Service>>) -> Response {
    page::render(StatusCode::OK, "design.html", values(service.links.path_prefix()))
}

fn values(prefix: &str) -> Value {
    context! {
        base => prefix,
        tones => TONES.map(|(label, tone, meaning)| html(&Badge {
            label: label.to_owned(),
            tone,
            meaning: Some(meaning.to_owned()),
        })),
        ages => [412, 6_200, 190_000].map(|age_ms| html(&board::freshness(age_ms))),
        regions => regions(&sample::board(), &|id| Links::new(prefix).href(id))
            .iter()
            .map(|region| Value::from_safe_string(region.element.to_string()))
            .collect::<Vec<_>>(),
    }
}

/// Elements escape their text.
fn html(shown: &Badge) -> Value {
    Value::from_safe_string(badge(shown).to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const STYLE: &str = include_str!("../../assets/tribune.css");
    const SWATCHES: &str = include_str!("../../assets/design.css");

    async fn html() -> String {
        let response = page::render(StatusCode::OK, "design.html", values("/below"));
        assert_eq!(response.status(), StatusCode::OK);
        let policy = response.headers()["content-security-policy"].to_str().expect("a policy");
        assert!(policy.contains("default-src 'none'; script-src 'self';"), "{policy}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        String::from_utf8(body.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn every_token_is_documented_and_shown() {
        let defined = STYLE.lines().filter_map(|line| line.trim().strip_prefix("--"));
        let defined: BTreeSet<&str> = defined.filter_map(|line| Some(line.split_once(':')?.0)).collect();
        let html = html().await;
        let documented = html.split("<code>--").skip(1).filter_map(|rest| Some(rest.split_once("</code>")?.0));
        assert_eq!(documented.collect::<BTreeSet<&str>>(), defined);
        for token in defined {
            let shown = format!("var(--{token})");
            assert!(SWATCHES.contains(&shown), "design.css does not show {token}");
        }
    }

    #[tokio::test]
    async fn page_marks_samples_and_has_no_inline_script() {
        let html = html().await;
        assert!(html.contains("These figures are samples"), "{html}");
        assert!(html.contains("below/assets/board.css\""), "{html}");
        assert!(!html.contains("<script>") && !html.contains(" style="), "{html}");
        assert!(html.contains("data-region=\"panel-candles\""), "{html}");
        assert!(html.len() < 100_000, "{} bytes", html.len());
    }
}
