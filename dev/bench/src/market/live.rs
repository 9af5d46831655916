//! CPU time of the feed with many live books.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use tribune_analytics::{Feed, Published};
use tribune_binance::{Rest, feed, rest};
use tribune_core::{Clock, SystemClock};

use super::{exchange, messages::IDS};
use crate::own::{Memory, Watch};

const LIVE_WITHIN: Duration = Duration::from_mins(2);
/// Between the last book's first view and the measurement.
const SETTLE: Duration = Duration::from_secs(2);
/// Enough for all snapshots at once; with the real budget they would take a quarter of an hour.
const WEIGHT_A_MINUTE: u32 = 10_000_000;

#[derive(Args)]
pub struct LiveArgs {
    #[arg(long)]
    exchange: SocketAddr,
    #[arg(long)]
    books: u32,
    #[arg(long)]
    seconds: u64,
}

#[derive(Serialize, Deserialize)]
pub struct Live {
    pub books: u32,
    /// Until all were live and had had an update.
    pub start_secs: f64,
    /// Still live at the end.
    pub live: usize,
    pub seconds: f64,
    pub updates: u64,
    pub resyncs: u64,
    /// The longest time since a book's last update.
    pub oldest_ms: u64,
    /// User and system time of the whole process.
    pub cpu_secs: f64,
    pub resident_bytes: u64,
    /// The exchange's share is among them.
    pub other_cores: f64,
}

pub async fn measure(args: &LiveArgs) -> Result<Live> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let rest = Rest::new(
        rest::Settings { base_url: format!("http://{}", args.exchange), ..rest::Settings::default() },
        clock.clone(),
    )?;
    rest.governor().set_budget(WEIGHT_A_MINUTE);
    let settings =
        feed::Settings { max_books: args.books as usize, ..feed::Settings::new(format!("ws://{}", args.exchange)) };
    let feed = Feed::start(settings, rest.with_priority(tribune_binance::Priority::Background), clock.clone());
    for number in 0..args.books {
        // None of them ranks among those of which deeper snapshots are taken.
        feed.track(&Arc::from(exchange::symbol(number)), true, usize::MAX);
    }
    let start = until_live(&feed, args.books as usize).await?;
    tokio::time::sleep(SETTLE).await;
    let books = feed.books();
    let before = applied(&books);
    let watch = Watch::start()?;
    tokio::time::sleep(Duration::from_secs(args.seconds)).await;
    let spent = watch.stop()?;
    let views: Vec<_> = books.iter().filter_map(|book| book.live()).collect();
    let ages = views.iter().map(|view| view.received.age_ms(&*clock));
    Ok(Live {
        books: args.books,
        start_secs: start.as_secs_f64(),
        live: views.len(),
        seconds: spent.wall.as_secs_f64(),
        updates: applied(&books).saturating_sub(before),
        resyncs: books.iter().map(|book| book.resyncs()).sum(),
        oldest_ms: ages.max().unwrap_or(0),
        cpu_secs: spent.cpu.as_secs_f64(),
        resident_bytes: Memory::now()?.resident,
        other_cores: spent.other_cores(),
    })
}

/// Waits until every book is live and had an update after its snapshot; returns the duration.
async fn until_live(feed: &Feed, wanted: usize) -> Result<Duration> {
    let begun = Instant::now();
    let is_live = |book: &&Arc<Published>| book.live().is_some_and(|view| view.exchange_time.is_some());
    loop {
        let live = feed.books().iter().filter(is_live).count();
        if live == wanted {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > LIVE_WITHIN {
            let trouble = feed.health.trouble();
            bail!("{live} of {wanted} books are live after {LIVE_WITHIN:?}; the streams' trouble: {trouble:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The number of applied messages; each covers the same number of ids.
fn applied(books: &[Arc<Published>]) -> u64 {
    let last = |book: &Arc<Published>| book.live().map_or(0, |view| view.last_update_id);
    books.iter().map(last).sum::<u64>() / IDS
}
