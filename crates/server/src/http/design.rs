//! `/design`: the whole look on one page, for whoever changes it or adds to it. Its figures are made up and say so.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use minijinja::{Value, context};
use tribune_core::Links;
use tribune_core::view::{Badge, Tone};
use tribune_draw::{badge, board, regions, sample};

use super::{App, page};

/// Token and what it is for. A test compares the lists with the style sheet.
type Tokens = &'static [(&'static str, &'static str)];

const COLOURS: Tokens = &[
    ("ink", "text"),
    ("soft", "text that may be passed over"),
    ("paper", "the page"),
    ("panel", "what lies on it"),
    ("line", "borders and grids"),
    ("link", "links and focus"),
    ("accent", "the main button, the first line of a chart"),
    ("on-accent", "text on the accent"),
    ("mark", "the cited passage"),
    ("mark-edge", "its edge"),
    ("good", "ready, fresh, done"),
    ("warning", "mind this"),
    ("bad", "failed, refused, destroys"),
    ("simulated", "not from the world"),
    ("up", "rose, buys, bids"),
    ("down", "fell, sells, asks"),
    ("up-fill", "areas and bars of the former"),
    ("down-fill", "and of the latter"),
];
const FACES: Tokens = &[
    ("serif", "to read"),
    ("sans", "to work with"),
    ("mono", "for what is exact"),
];
const SIZES: Tokens = &[
    ("text-xxl", "the price"),
    ("text-xl", "a page's title"),
    ("text-l", "a part's title"),
    ("text-m", "text"),
    ("text-s", "fields, tables, notes"),
    ("text-xs", "badges, labels, captions"),
];
const SPACES: Tokens = &[
    ("gap-xs", "within a line"),
    ("gap-s", "between lines of one thing"),
    ("gap-m", "between things"),
    ("gap-l", "between parts"),
    ("gap-xl", "around the page"),
    ("radius", "corners"),
    ("measure", "the width of text that is read"),
    ("wide", "the widest a page gets"),
];

pub(super) async fn design(State(app): State<App>) -> Response {
    page::render(StatusCode::OK, "design.html", values(app.service.links.path_prefix()))
}

fn values(prefix: &str) -> Value {
    context! {
        base => prefix,
        colours => COLOURS.to_vec(),
        faces => FACES.to_vec(),
        sizes => SIZES.to_vec(),
        spaces => SPACES.to_vec(),
        tones => tones().iter().map(drawn).collect::<Vec<_>>(),
        ages => [412, 6_200, 190_000].map(|age_ms| drawn(&board::freshness(age_ms))),
        regions => regions(&sample::board(), &Links::new(prefix))
            .iter()
            .map(|region| Value::from_safe_string(region.element.to_string()))
            .collect::<Vec<_>>(),
    }
}

/// Elements escape what they hold.
fn drawn(shown: &Badge) -> Value {
    Value::from_safe_string(badge(shown).to_string())
}

fn tones() -> Vec<Badge> {
    let badge = |label: &str, tone, meaning: &str| Badge {
        label: label.to_owned(),
        tone,
        meaning: Some(meaning.to_owned()),
    };
    vec![
        badge("SIMULATED", Tone::Simulated, "not from the world"),
        badge("cited", Tone::Plain, "as it was"),
        badge("ready", Tone::Good, "it can be asked"),
        badge("degraded", Tone::Warning, "a part of it is missing"),
        badge("not ready", Tone::Bad, "it cannot be asked"),
        badge("buy", Tone::Up, "takes from the asks"),
        badge("sell", Tone::Down, "takes from the bids"),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const STYLE: &str = include_str!("../../assets/tribune.css");
    const SWATCHES: &str = include_str!("../../assets/design.css");

    #[test]
    fn every_token_is_on_the_page_and_shown() {
        let defined: BTreeSet<&str> = STYLE
            .lines()
            .filter_map(|line| line.trim().strip_prefix("--"))
            .filter_map(|line| Some(line.split_once(':')?.0))
            .collect();
        let lists = [COLOURS, FACES, SIZES, SPACES];
        let documented: BTreeSet<&str> = lists.into_iter().flatten().map(|(token, _)| *token).collect();
        assert_eq!(documented, defined);
        for token in documented {
            let shown = format!("var(--{token})");
            assert!(SWATCHES.contains(&shown), "design.css does not show {token}");
        }
    }

    #[tokio::test]
    async fn the_page_says_that_its_figures_are_made_up_and_has_no_inline_script() {
        let response = page::render(StatusCode::OK, "design.html", values("/below"));
        assert_eq!(response.status(), StatusCode::OK);
        let policy = response.headers()["content-security-policy"]
            .to_str()
            .expect("a policy");
        assert!(policy.contains("default-src 'none'; script-src 'self';"), "{policy}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .expect("a body");
        let html = std::str::from_utf8(&body).expect("text");
        assert!(html.contains("Sample figures, made up for this page"), "{html}");
        assert!(html.contains("below/assets/board.css\""), "{html}");
        assert!(!html.contains("<script>") && !html.contains(" style="), "{html}");
        assert!(html.contains("data-region=\"panel-candles\""), "{html}");
        assert!(html.len() < 100_000, "{} bytes", html.len());
    }
}
