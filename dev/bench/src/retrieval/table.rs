//! The report as Markdown.

use std::fmt::Write as _;

use tribune_core::source::thousands;

use super::{
    Engined, Measured,
    engines::{Engine, Set, SetLabel},
};
use crate::{own::Memory, report};

/// The goal for search at the largest size, p99 in milliseconds.
const WORDS_GOAL_MS: f64 = 10.0;
const HYBRID_GOAL_MS: f64 = 50.0;
const START_GOAL_MS: f64 = 1_000.0;

pub fn markdown(load_average: &str, measured: &Measured) -> String {
    let mut text = report::heading("Retrieval", &facts(load_average, measured));
    making(&mut text, measured);
    asking(&mut text, measured);
    starting(&mut text, measured);
    embedding(&mut text, measured);
    goals(&mut text, measured);
    text
}

fn facts(load_average: &str, measured: &Measured) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Load average before the run", load_average.to_owned())];
    let texts = measured.sizes.iter().map(|size| {
        let megabytes = size.text_bytes as f64 / 1e6;
        format!("{} passages ({megabytes:.0} MB of JSONL)", thousands(size.passages.into()))
    });
    facts.push(("Texts", format!("generated: {}", texts.collect::<Vec<_>>().join(", "))));
    facts.push((
        "Vectors",
        "generated, 384 numbers each, because a model would need hours for a million of them; what is compared, kept \
         and ranked is the same"
            .to_owned(),
    ));
    let questions = match measured.real_questions {
        true => "each asked once; hybrid search makes its vector with the built-in model",
        false => "each asked once; this build has no model, so that hybrid search does without the time for a vector",
    };
    facts.push(("Questions", questions.to_owned()));
    facts
}

fn making(text: &mut String, measured: &Measured) {
    text.push_str(
        "| Passages | Index | Passages per CPU second | Passages/s | Index bytes per passage \
         | Peak MB while indexing | Others' cores |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for size in &measured.sizes {
        let passages = f64::from(size.passages);
        for Engined { engine, making, .. } in &size.engines {
            let label = match engine {
                Engine::TribuneVectors => "Tribune, generated vectors on top",
                other => other.label(),
            };
            let _ = writeln!(
                text,
                "| {} | {label} | {} | {} | {:.0} | {:.0} | {:.2} |",
                thousands(size.passages.into()),
                thousands((passages / making.cpu_secs) as u64),
                thousands((passages / making.wall_secs) as u64),
                making.index_bytes as f64 / passages,
                making.peak_bytes as f64 / 1e6,
                making.other_cores,
            );
        }
    }
    text.push('\n');
}

fn asking(text: &mut String, measured: &Measured) {
    text.push_str(
        "| Passages | Search | Questions | p50 ms | p95 ms | p99 ms | Max ms | CPU ms | p99 ms, 2 callers \
         | Open ms | Own MB | Own bytes per passage | RSS MB | Others' cores |\n\
         | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for size in &measured.sizes {
        for engined in &size.engines {
            let asking = &engined.asking;
            let two = asking.sets.iter().find(|set| set.label == SetLabel::TwoCallers);
            let Memory { own, resident, .. } = asking.after;
            for set in asking.sets.iter().filter(|set| set.label != SetLabel::TwoCallers) {
                let more = match (set.label, two) {
                    (SetLabel::Plain, Some(two)) => format!(
                        "{:.2} | {:.0} | {:.0} | {:.0} | {:.0}",
                        two.p99_ms,
                        asking.open_ms,
                        own as f64 / 1e6,
                        own as f64 / f64::from(size.passages),
                        resident as f64 / 1e6,
                    ),
                    _ => "| | | |".to_owned(),
                };
                let _ = writeln!(
                    text,
                    "| {} | {}{} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {more} | {:.2} |",
                    thousands(size.passages.into()),
                    engined.engine.label(),
                    addition(set),
                    thousands(set.questions as u64),
                    set.p50_ms,
                    set.p95_ms,
                    set.p99_ms,
                    set.max_ms,
                    set.cpu_ms,
                    set.other_cores,
                );
            }
        }
    }
    text.push_str(
        "\n\"Own\" is memory without pages of mapped files, which the system takes back when it needs them; RSS counts \
         both. Peers are given the same passages, find ten and read their texts; Tribune also finds the best passage of \
         each document, quotes it and counts the words it covers.\n\n",
    );
}

fn addition(set: &Set) -> &'static str {
    match set.label {
        SetLabel::Plain | SetLabel::TwoCallers => "",
        SetLabel::WholeWay => ", through the pool",
        SetLabel::Filtered => ", filtered by date or field",
    }
}

fn starting(text: &mut String, measured: &Measured) {
    if measured.start.is_empty() {
        return;
    }
    text.push_str("| Start of a server on the largest index | Ready ms | First answer ms | RSS MB |\n| --- | ---: | ---: | ---: |\n");
    for start in &measured.start {
        let _ = writeln!(
            text,
            "| {} | {:.0} | {:.0} | {:.0} |",
            if start.vectors { "with vectors" } else { "full text alone" },
            start.ready_ms,
            start.answered_ms,
            start.resident_bytes as f64 / 1e6,
        );
    }
    text.push('\n');
}

fn embedding(text: &mut String, measured: &Measured) {
    let embedding = &measured.embedding;
    for missing in &embedding.missing {
        let _ = writeln!(text, "Not measured: {missing}.");
    }
    if embedding.passages.is_empty() {
        text.push('\n');
        return;
    }
    text.push_str("| Model | Tokens | Threads | Passages/s | Others' cores |\n| --- | ---: | ---: | ---: | ---: |\n");
    for row in &embedding.passages {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.2} |",
            row.model, row.tokens, row.threads, row.passages_per_sec, row.other_cores
        );
    }
    text.push('\n');
    for row in &embedding.questions {
        let _ = writeln!(text, "A question by {}: p50 {:.2} ms, p99 {:.2} ms.", row.model, row.p50_ms, row.p99_ms);
    }
    text.push('\n');
}

fn goals(text: &mut String, measured: &Measured) {
    let Some(size) = measured.sizes.iter().max_by_key(|size| size.passages) else {
        return;
    };
    let mut goal = |what: &str, value: f64, most: f64| {
        let verdict = if value < most { "met" } else { "missed" };
        let _ = writeln!(text, "- {what}: {value:.2} ms, goal {most:.0} ms: {verdict}");
    };
    let passages = thousands(size.passages.into());
    let searches = [("Full text", Engine::Tribune, WORDS_GOAL_MS), ("Hybrid", Engine::TribuneVectors, HYBRID_GOAL_MS)];
    for (what, engine, most) in searches {
        let Some(engined) = size.engines.iter().find(|engined| engined.engine == engine) else {
            continue;
        };
        // The goal applies to every sequential search, including the slowest.
        for set in engined.asking.sets.iter().filter(|set| set.callers == 1) {
            let what = format!("{what}{}, p99 at {passages} passages", addition(set));
            goal(&what, set.p99_ms, most);
        }
    }
    for start in &measured.start {
        let with = if start.vectors { "with vectors" } else { "full text alone" };
        goal(&format!("Start on an existing index, {with}"), start.answered_ms, START_GOAL_MS);
    }
}
