//! One stream connection: messages out, requests in, pings, and its end after a day.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use futures::SinkExt as _;
use indexmap::IndexSet;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::request::{self, Method, Request};
use crate::faults::Fault;
use crate::hub::Subscriber;
use crate::venue::Venue;

/// Messages written before the socket is flushed.
const BATCH: usize = 256;
const GARBAGE: &str = "{\"e\":\"depthUpd\u{fffd}<<<not json";

/// The connection has ended.
struct Closed;

struct Connection {
    venue: Arc<Venue>,
    socket: WebSocket,
    subscriber: Subscriber,
    streams: IndexSet<String>,
    /// When the messages of the last second came.
    received: Vec<Instant>,
    /// When the first ping since the last pong was sent.
    unanswered_since: Option<Instant>,
}

pub async fn run(venue: Arc<Venue>, socket: WebSocket, streams: Vec<String>, combined: bool) {
    let (subscriber, queue) = venue.markets.hub.join(combined);
    let mut connection = Connection {
        venue,
        socket,
        subscriber,
        streams: IndexSet::new(),
        received: Vec::new(),
        unanswered_since: None,
    };
    connection.subscribe(streams);
    let (cut, stopping) = (connection.subscriber.cut.clone(), connection.venue.stopping.clone());
    // Whenever the connection ends, even within a message, the hub must forget it.
    tokio::select! {
        () = cut.cancelled() => {}
        () = stopping.cancelled() => {}
        _ = connection.serve(queue) => {}
    }
    connection.venue.markets.hub.leave(&connection.subscriber);
}

impl Connection {
    async fn serve(&mut self, mut queue: mpsc::Receiver<Utf8Bytes>) -> Result<(), Closed> {
        let limits = self.venue.limits.clone();
        let started = Instant::now();
        let ends = started + limits.connection_lifetime;
        let notice = tokio::time::sleep_until(ends.checked_sub(limits.shutdown_notice).unwrap_or(started));
        let end = tokio::time::sleep_until(ends);
        let mut pings = tokio::time::interval_at(started + limits.ping_every, limits.ping_every);
        tokio::pin!(notice, end);
        let mut is_announced = false;
        loop {
            tokio::select! {
                message = queue.recv() => self.forward(message.ok_or(Closed)?, &mut queue).await?,
                message = self.socket.recv() => {
                    let message = message.ok_or(Closed)?.map_err(|_| Closed)?;
                    self.receive(message).await?;
                }
                _ = pings.tick() => self.ping(limits.pong_within).await?,
                () = &mut notice, if !is_announced => {
                    is_announced = true;
                    self.announce_end().await?;
                }
                () = &mut end, if is_announced => {
                    return self.close(close_code::AWAY, "the connection reached its maximum age").await;
                }
            }
        }
    }

    /// Sends a message and those that wait behind it, then flushes once.
    async fn forward(&mut self, first: Utf8Bytes, queue: &mut mpsc::Receiver<Utf8Bytes>) -> Result<(), Closed> {
        self.feed(first).await?;
        for _ in 0..BATCH {
            let Ok(message) = queue.try_recv() else { break };
            self.feed(message).await?;
        }
        self.socket.flush().await.map_err(|_| Closed)
    }

    async fn feed(&mut self, message: Utf8Bytes) -> Result<(), Closed> {
        let faults = &self.venue.markets.faults;
        if faults.is_silent() {
            return Ok(());
        }
        let message = match faults.take(|fault| matches!(fault, Fault::GarbageMessages { .. })) {
            true => Utf8Bytes::from_static(GARBAGE),
            false => message,
        };
        self.socket.feed(Message::Text(message)).await.map_err(|_| Closed)
    }

    async fn send(&mut self, message: Message) -> Result<(), Closed> {
        if self.venue.markets.faults.is_silent() {
            return Ok(());
        }
        self.socket.send(message).await.map_err(|_| Closed)
    }

    async fn send_text(&mut self, text: String) -> Result<(), Closed> {
        self.send(Message::Text(text.into())).await
    }

    async fn close(&mut self, code: u16, reason: &'static str) -> Result<(), Closed> {
        let reason = Utf8Bytes::from_static(reason);
        self.send(Message::Close(Some(CloseFrame { code, reason }))).await?;
        Err(Closed)
    }

    async fn announce_end(&mut self) -> Result<(), Closed> {
        let event = json!({"e": "serverShutdown", "E": self.venue.markets.server_time()});
        let text = match self.subscriber.is_combined {
            true => json!({"stream": "serverShutdown", "data": event}),
            false => event,
        };
        self.send_text(text.to_string()).await
    }

    async fn ping(&mut self, pong_within: Duration) -> Result<(), Closed> {
        // Nobody can answer a ping that a fault holds back.
        if self.venue.markets.faults.is_silent() {
            return Ok(());
        }
        if self.unanswered_since.get_or_insert_with(Instant::now).elapsed() >= pong_within {
            return self.close(close_code::POLICY, "no pong came in time").await;
        }
        self.send(Message::Ping(Bytes::from(self.venue.markets.now().to_string()))).await
    }

    async fn receive(&mut self, message: Message) -> Result<(), Closed> {
        if self.is_over_message_limit() {
            return self.close(close_code::POLICY, "too many messages").await;
        }
        match message {
            Message::Text(text) => self.handle_request(text.as_str()).await,
            Message::Pong(_) => {
                self.unanswered_since = None;
                Ok(())
            }
            // The WebSocket library answers pings.
            Message::Ping(_) => Ok(()),
            Message::Binary(_) => self.close(close_code::UNSUPPORTED, "binary messages are not supported").await,
            Message::Close(_) => Err(Closed),
        }
    }

    fn is_over_message_limit(&mut self) -> bool {
        let now = Instant::now();
        self.received.retain(|time| now - *time < Duration::from_secs(1));
        self.received.push(now);
        self.received.len() > self.venue.limits.inbound_per_second
    }

    async fn handle_request(&mut self, text: &str) -> Result<(), Closed> {
        let request = match request::parse(text) {
            Ok(request) => request,
            Err(refusal) => return self.send_text(refusal).await,
        };
        let faults = &self.venue.markets.faults;
        let is_subscription = request.method == Method::Subscribe;
        if is_subscription && faults.take(|fault| matches!(fault, Fault::RefuseSubscriptions { .. })) {
            return self.send_text(request::invalid(&request.id, "refused by a fault")).await;
        }
        if is_subscription && faults.take(|fault| matches!(fault, Fault::IgnoreSubscriptions { .. })) {
            return Ok(());
        }
        let answer = self.execute(request);
        self.send_text(answer).await
    }

    fn execute(&mut self, request: Request) -> String {
        let Request { method, params, id } = request;
        let mut result = Value::Null;
        match method {
            Method::Subscribe => {
                let new = params.iter().filter(|name| !self.streams.contains(*name)).count();
                if self.streams.len() + new > self.venue.limits.streams_per_connection {
                    return request::invalid(&id, "too many streams on one connection");
                }
                self.subscribe(params);
            }
            Method::Unsubscribe => {
                for stream in params {
                    if self.streams.shift_remove(&stream) {
                        self.venue.markets.hub.unsubscribe(&self.subscriber, &stream);
                    }
                }
            }
            Method::ListSubscriptions => result = json!(self.streams),
        }
        json!({"result": result, "id": id}).to_string()
    }

    fn subscribe(&mut self, streams: Vec<String>) {
        for stream in streams {
            self.venue.markets.hub.subscribe(&self.subscriber, &stream);
            // Streams of all symbols do not start a replay: such a client has yet to choose one.
            if let Some(replay) = self.venue.replay.as_ref().filter(|_| !stream.starts_with('!')) {
                replay.start();
            }
            self.streams.insert(stream);
        }
    }
}
