//! The report as Markdown.

use std::fmt::Write as _;

use tribune_core::source::thousands;

use super::{Measured, exchange::MESSAGES_A_SECOND, reports::Percentiles, served::CALLERS};
use crate::report;

const RATE_GOAL: f64 = 60_000.0;
const LATENCY_GOAL_US: f64 = 100.0;
const MEMORY_GOAL_MB: f64 = 300.0;
/// Of two cores.
const CPU_GOAL_PERCENT: f64 = 50.0;
const ANSWER_GOAL_MS: f64 = 50.0;
/// Of all symbols' reports.
const REPORTS_GOAL_CORES: f64 = 1.0;

pub fn markdown(load_average: &str, measured: &Measured) -> String {
    let facts = [
        ("Load average before the run", load_average.to_owned()),
        (
            "Messages",
            "generated: combined-stream JSON, 18 to 28 levels a side and more where the price moves, half of them \
             within 20 ticks of the best price"
                .to_owned(),
        ),
    ];
    let mut text = report::heading("Order books", &facts);
    applying(&mut text, measured);
    publishing(&mut text, measured);
    keeping(&mut text, measured);
    answering(&mut text, measured);
    reporting(&mut text, measured);
    serving(&mut text, measured);
    text
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

fn applying(text: &mut String, measured: &Measured) {
    let _ = writeln!(
        text,
        "| Read, applied and published on one core | Bytes | Messages per CPU second | Range | Goal | Messages/s \
         | p50 µs | p99 µs | Goal | Others' cores |\n\
         | --- | ---: | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: |"
    );
    for row in &measured.applied {
        let _ = writeln!(
            text,
            "| {} of {} levels a side | {:.0} | {} | {}-{} | {} or more: {} | {} | {:.1} | {:.1} | below {LATENCY_GOAL_US:.0}: {} | {:.2} |",
            books(row.books),
            thousands(row.levels.into()),
            row.message_bytes,
            thousands(row.core_rate as u64),
            thousands(row.slowest_core_rate as u64),
            thousands(row.fastest_core_rate as u64),
            thousands(RATE_GOAL as u64),
            verdict(row.core_rate >= RATE_GOAL),
            thousands(row.rate as u64),
            row.p50_us,
            row.p99_us,
            verdict(row.p99_us < LATENCY_GOAL_US),
            row.other_cores,
        );
    }
    text.push('\n');
}

fn publishing(text: &mut String, measured: &Measured) {
    text.push_str("| Publishing a view after a message | p50 µs | p99 µs |\n| --- | ---: | ---: |\n");
    for row in &measured.applied {
        let _ = writeln!(
            text,
            "| {} of {} levels a side | {:.2} | {:.2} |",
            books(row.books),
            thousands(row.levels.into()),
            row.publish_p50_us,
            row.publish_p99_us,
        );
    }
    text.push('\n');
}

fn books(count: u32) -> String {
    match count {
        1 => "one book".to_owned(),
        _ => format!("{} books in turn", thousands(count.into())),
    }
}

fn keeping(text: &mut String, measured: &Measured) {
    let memory = &measured.books;
    let megabytes = memory.resident_bytes as f64 / 1e6;
    let live = &measured.live;
    let cores = live.cpu_secs / live.seconds;
    let percent = cores / 2.0 * 100.0;
    text.push_str("| Many books | Measured | Goal |\n| --- | --- | --- |\n");
    let _ = writeln!(
        text,
        "| Memory of {} books of {} levels a side, tracked and published | {megabytes:.0} MB | below {MEMORY_GOAL_MB:.0} MB: {} |",
        thousands(memory.books.into()),
        thousands(memory.levels.into()),
        verdict(megabytes < MEMORY_GOAL_MB),
    );
    let _ = writeln!(
        text,
        "| Processor time of {} live books at {MESSAGES_A_SECOND} updates a second, by the feed over loopback for \
         {:.0} s | {percent:.1}% of two cores | below {CPU_GOAL_PERCENT:.0}%: {} |",
        thousands(live.books.into()),
        live.seconds,
        verdict(percent < CPU_GOAL_PERCENT),
    );
    let whole = live.live == live.books as usize;
    let _ = writeln!(
        text,
        "| - live at the end | {} | all: {} |\n| - updates applied | {} | {}: {} |\n| - resyncs | {} | 0: {} |",
        thousands(live.live as u64),
        verdict(whole),
        thousands(live.updates),
        thousands((f64::from(live.books) * live.seconds) as u64 * MESSAGES_A_SECOND),
        verdict(live.updates as f64 >= f64::from(live.books) * live.seconds * MESSAGES_A_SECOND as f64 * 0.99),
        live.resyncs,
        verdict(live.resyncs == 0),
    );
    let _ = writeln!(
        text,
        "| - until all were live and updated | {:.1} s | |\n| - oldest book at the end | {} ms | |\n| - RSS of the process | {:.0} MB | |\n\
         | - others' cores, the sender's among them | {:.2} | |\n",
        live.start_secs,
        live.oldest_ms,
        live.resident_bytes as f64 / 1e6,
        live.other_cores,
    );
}

fn serving(text: &mut String, measured: &Measured) {
    text.push('\n');
    let _ = writeln!(
        text,
        "| `get_report` over HTTP, {CALLERS} callers at once | Answers/s \
         | p50 ms | p99 ms | Goal | Server cores | Others' cores |\n| --- | ---: | ---: | ---: | --- | ---: | ---: |",
    );
    for row in &measured.served {
        let seconds = row.measured.elapsed.as_secs_f64();
        let p99 = row.measured.latency_ms(0.99);
        let _ = writeln!(
            text,
            "| from {}, {} | {} | {:.2} | {p99:.2} | p99 below {:.0} ms, none failed: {} | {:.2} | {:.2} |",
            row.place,
            match row.pace {
                Some(pace) => format!("each asking every {} ms", pace.as_millis()),
                None => "each asking again as soon as it is answered".to_owned(),
            },
            thousands((row.measured.requests() as f64 / seconds) as u64),
            row.measured.latency_ms(0.5),
            row.goal_ms,
            verdict(p99 < row.goal_ms && row.measured.failures == 0),
            row.measured.server_cpu.as_secs_f64() / seconds,
            row.measured.other_cpu.as_secs_f64() / seconds,
        );
    }
    text.push('\n');
}

fn answering(text: &mut String, measured: &Measured) {
    let _ = writeln!(
        text,
        "| Answers with {} symbols, from the simulated exchange in the same process | Times | p50 ms | p99 ms | Max ms \
         | Goal | Others' cores |\n| --- | ---: | ---: | ---: | ---: | --- | ---: |",
        thousands(measured.answers.symbols)
    );
    for row in &measured.answers.rows {
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {:.2} | p99 below {ANSWER_GOAL_MS:.0} ms: {} | {:.2} |",
            row.what,
            thousands(row.times as u64),
            row.p50_ms,
            row.p99_ms,
            row.max_ms,
            verdict(row.p99_ms < ANSWER_GOAL_MS),
            row.other_cores,
        );
    }
}

fn reporting(text: &mut String, measured: &Measured) {
    let reports = &measured.reports;
    let _ = writeln!(
        text,
        "\n| Reports of {} symbols, {} levels a side, {} trades on their tapes | p50 µs | p99 µs |\n| --- | ---: | ---: |",
        thousands(reports.symbols.into()),
        thousands(reports.levels.into()),
        thousands(reports.trades),
    );
    let mut row = |what: &str, times: &Percentiles| {
        let _ = writeln!(text, "| {what} | {:.1} | {:.1} |", times.p50_us, times.p99_us);
    };
    row("Fast figures, and the report", &reports.fast);
    row("- of a symbol with 50 trades a second", &reports.fast_liveliest);
    row("Slow figures", &reports.slow);
    row("- of a symbol with 50 trades a second", &reports.slow_liveliest);
    row("A report as JSON", &reports.json);
    let _ = writeln!(
        text,
        "\n| Reports | Measured | Goal |\n| --- | --- | --- |\n\
         | Fast reports per CPU second | {} | |\n\
         | Fast four times a second, slow every two seconds | {:.2} cores | below {REPORTS_GOAL_CORES:.0}: {} |\n\
         | - with each report written as JSON | {:.2} cores | |\n\
         | JSON of a report | {} bytes | |\n\
         | Others' cores | {:.2} | |",
        thousands(reports.fast_core_rate as u64),
        reports.cores,
        verdict(reports.cores < REPORTS_GOAL_CORES),
        reports.cores_with_json,
        thousands(reports.json_bytes),
        reports.other_cores,
    );
}
