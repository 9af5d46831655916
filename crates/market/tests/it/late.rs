//! Streams that are held up on the way: what comes is exact, and old.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tribune_exchange_sim::Limits;

use crate::support::{MarketSettings, exchange, simulation, until};

/// A way to the streams that brings everything later than it came.
struct SlowWire {
    address: SocketAddr,
    delay_ms: Arc<AtomicU64>,
}

impl SlowWire {
    async fn to(far: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let delay_ms = Arc::<AtomicU64>::default();
        let delay = delay_ms.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, far, delay.clone()));
            }
        });
        Self { address, delay_ms }
    }

    fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).expect("milliseconds");
        self.delay_ms.store(millis, Ordering::Relaxed);
    }
}

async fn carry(near: TcpStream, far: SocketAddr, delay_ms: Arc<AtomicU64>) {
    let far = TcpStream::connect(far).await.expect("an exchange is there");
    let (mut near_reads, mut near_writes) = near.into_split();
    let (mut far_reads, mut far_writes) = far.into_split();
    let (sender, mut waiting) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move { tokio::io::copy(&mut near_reads, &mut far_writes).await });
    tokio::spawn(async move {
        while let Some((at, bytes)) = waiting.recv().await {
            tokio::time::sleep_until(at).await;
            if near_writes.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = far_reads.read(&mut buffer).await {
        let at = Instant::now() + Duration::from_millis(delay_ms.load(Ordering::Relaxed));
        if sender.send((at, buffer[..count].to_vec())).is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_books_are_not_live() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let wire = SlowWire::to(exchange.addr()).await;
    let streams = format!("ws://{}", wire.address);
    let market = MarketSettings::at(exchange.rest_url(), streams).start().ready().await;
    market.live("orderbook_l1:BTCUSDT").await;

    wire.delay(Duration::from_secs(4));
    until("it is said to be late, and asked for", || async {
        let document = market.fetch("orderbook_l1:BTCUSDT").await.expect("an answer");
        let reason = document.metadata.get("book_state_reason").and_then(|reason| reason.as_str());
        let is_late = reason.is_some_and(|reason| reason.contains("s late"));
        // What was asked for is not as old as what came.
        let is_fresh = document.metadata["age_ms"].as_u64() < Some(3_000);
        let is_asked_for = document.metadata["data_source"] == "rest";
        is_late && is_asked_for && is_fresh && document.metadata["book_state"] == "stale"
    })
    .await;

    wire.delay(Duration::ZERO);
    market.live("orderbook_l1:BTCUSDT").await;
}
