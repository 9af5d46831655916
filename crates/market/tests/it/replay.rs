//! A recording, served as a market.

use tempfile::TempDir;
use tribune_exchange_sim::Exchange;

use crate::by_hand::{laid_out, trade, tricky};
use crate::recording::{Recording, finished, play};
use crate::support::{MarketSettings, until};

async fn played(recording: &Recording, folder: &TempDir) -> Exchange {
    let path = folder.path().join("EEEUSDT.gz");
    recording.write_gz(&path);
    play(vec![path], 0.0).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recording_is_labelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let exchange = played(&laid_out(tricky("EEEUSDT")), &folder).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.fetch("orderbook_l1:EEEUSDT").await.expect("an answer");
    until("it is played", || finished(&exchange)).await;
    let document = market.live("orderbook_l1:EEEUSDT").await;
    assert!(document.text.starts_with("SIMULATED: a replay"), "{}", document.text);
    assert!(document.text.contains("best bid 9.95 for 0.5 EEE, best ask 10.1 for 4 EEE"), "{}", document.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flow_before_the_recording_is_incomplete() {
    let mut values = tricky("EEEUSDT");
    values.push(trade("EEEUSDT", 1, 1_400, "10", "1", false));
    values.push(trade("EEEUSDT", 2, 1_500, "10", "2", true));
    let folder = tempfile::tempdir().expect("a folder");
    let exchange = played(&laid_out(values), &folder).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.fetch("orderbook_l1:EEEUSDT").await.expect("an answer");
    until("it is played", || finished(&exchange)).await;
    match market.fetch("analytics:order_flow:EEEUSDT").await {
        Err(error) => {
            let told = error.to_string();
            assert!(told.contains("the recording does not have every trade of this time"), "{told}");
        }
        Ok(document) => assert!(document.text.contains("\ncomplete: false\n"), "{}", document.text),
    }
}
