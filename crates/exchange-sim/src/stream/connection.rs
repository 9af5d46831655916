//! One stream connection: messages out, requests in, pings, and its end after a day.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use futures::SinkExt as _;
use indexmap::IndexSet;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::hub::Peer;
use super::names;
use super::request::{self, Command, Refusal, Request};
use crate::faults::SubscriptionFate;
use crate::venue::Venue;

/// Messages written before the socket is flushed.
const BATCH: usize = 256;
const GARBAGE: &str = "{\"e\":\"depthUpd\u{fffd}<<<not json";

/// The connection is over.
struct Over;

struct Connection {
    venue: Arc<Venue>,
    socket: WebSocket,
    peer: Peer,
    streams: IndexSet<String>,
    inbound: VecDeque<Instant>,
    /// Pings that were not answered yet, oldest first.
    unanswered: VecDeque<(Bytes, Instant)>,
}

pub async fn run(venue: Arc<Venue>, socket: WebSocket, streams: Vec<String>, combined: bool) {
    let (peer, queue) = venue.hub.join(combined);
    let mut connection = Connection {
        venue,
        socket,
        peer,
        streams: IndexSet::new(),
        inbound: VecDeque::new(),
        unanswered: VecDeque::new(),
    };
    connection.subscribe(streams);
    let (cut, stopping) = (connection.peer.cut.clone(), connection.venue.stopping.clone());
    // Whatever ends it, the hub has to know; and it can end in the middle of a message that nobody reads.
    tokio::select! {
        () = cut.cancelled() => {}
        () = stopping.cancelled() => {}
        _ = connection.live(queue) => {}
    }
    connection.venue.hub.leave(&connection.peer, connection.streams.iter());
}

impl Connection {
    async fn live(&mut self, mut queue: mpsc::Receiver<Utf8Bytes>) -> Result<(), Over> {
        let limits = self.venue.limits.clone();
        let started = Instant::now();
        let ends = started + limits.connection_lifetime;
        let notice = tokio::time::sleep_until(ends.checked_sub(limits.shutdown_notice).unwrap_or(started));
        let end = tokio::time::sleep_until(ends);
        let mut pings = tokio::time::interval_at(started + limits.ping_every, limits.ping_every);
        tokio::pin!(notice, end);
        let mut noticed = false;
        loop {
            tokio::select! {
                message = queue.recv() => self.forward(message.ok_or(Over)?, &mut queue).await?,
                message = self.socket.recv() => {
                    let message = message.ok_or(Over)?.map_err(|_| Over)?;
                    self.hear(message).await?;
                }
                _ = pings.tick() => self.ping(limits.pong_within).await?,
                () = &mut notice, if !noticed => {
                    noticed = true;
                    self.announce_end().await?;
                }
                () = &mut end => return self.close(close_code::AWAY, "the connection has reached its age").await,
            }
        }
    }

    /// Sends a message and those that wait behind it, then flushes once.
    async fn forward(&mut self, first: Utf8Bytes, queue: &mut mpsc::Receiver<Utf8Bytes>) -> Result<(), Over> {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(message) = next else { break };
            self.feed(message).await?;
            next = queue.try_recv().ok();
        }
        if let Some(message) = next {
            self.feed(message).await?;
        }
        self.socket.flush().await.map_err(|_| Over)
    }

    async fn feed(&mut self, message: Utf8Bytes) -> Result<(), Over> {
        let faults = &self.venue.faults;
        if faults.silent() {
            return Ok(());
        }
        let message = if faults.take_garbage_message() {
            Utf8Bytes::from_static(GARBAGE)
        } else {
            message
        };
        self.socket.feed(Message::Text(message)).await.map_err(|_| Over)
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        if self.venue.faults.silent() {
            return Ok(());
        }
        self.socket.send(message).await.map_err(|_| Over)
    }

    async fn say(&mut self, text: String) -> Result<(), Over> {
        self.send(Message::Text(text.into())).await
    }

    async fn close(&mut self, code: u16, reason: &'static str) -> Result<(), Over> {
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
        self.send(Message::Close(Some(frame))).await?;
        Err(Over)
    }

    async fn announce_end(&mut self) -> Result<(), Over> {
        let event = json!({"e": "serverShutdown", "E": self.venue.told_time()});
        let text = if self.peer.combined.load(Ordering::Relaxed) {
            json!({"stream": "serverShutdown", "data": event})
        } else {
            event
        };
        self.say(text.to_string()).await
    }

    async fn ping(&mut self, pong_within: Duration) -> Result<(), Over> {
        let now = Instant::now();
        let late = self
            .unanswered
            .front()
            .is_some_and(|(_, sent)| now - *sent >= pong_within);
        if late {
            return self.close(close_code::POLICY, "no pong came in time").await;
        }
        let payload = Bytes::from(self.venue.now().to_string());
        self.unanswered.push_back((payload.clone(), now));
        self.send(Message::Ping(payload)).await
    }

    async fn hear(&mut self, message: Message) -> Result<(), Over> {
        if self.too_talkative() {
            return self.close(close_code::POLICY, "too many messages").await;
        }
        match message {
            Message::Text(text) => self.obey(text.as_str()).await,
            Message::Pong(payload) => {
                if let Some(at) = self.unanswered.iter().position(|(sent, _)| *sent == payload) {
                    self.unanswered.drain(..=at);
                }
                Ok(())
            }
            // Answered by the protocol's implementation.
            Message::Ping(_) => Ok(()),
            Message::Binary(_) => {
                self.close(close_code::UNSUPPORTED, "binary messages are not understood")
                    .await
            }
            Message::Close(_) => Err(Over),
        }
    }

    fn too_talkative(&mut self) -> bool {
        let now = Instant::now();
        self.inbound.push_back(now);
        while self
            .inbound
            .front()
            .is_some_and(|time| now - *time >= Duration::from_secs(1))
        {
            self.inbound.pop_front();
        }
        self.inbound.len() > self.venue.limits.inbound_per_second
    }

    async fn obey(&mut self, text: &str) -> Result<(), Over> {
        let request = match request::parse(text) {
            Ok(request) => request,
            Err(refusal) => return self.say(refusal.json()).await,
        };
        if matches!(request.command, Command::Subscribe(_)) {
            match self.venue.faults.next_subscription() {
                SubscriptionFate::Take => {}
                SubscriptionFate::Ignore => return Ok(()),
                SubscriptionFate::Refuse => {
                    let refusal = Refusal {
                        id: request.id,
                        code: 2,
                        message: "Invalid request: refused on demand".to_owned(),
                    };
                    return self.say(refusal.json()).await;
                }
            }
        }
        let answer = self.carry_out(request).unwrap_or_else(|refusal| refusal.json());
        self.say(answer).await
    }

    fn carry_out(&mut self, request: Request) -> Result<String, Refusal> {
        let result = match request.command {
            Command::Subscribe(streams) => {
                if !streams.iter().all(|name| names::is_served(&self.venue, name)) {
                    return Err(Refusal::invalid_stream(request.id));
                }
                let new = streams.iter().filter(|name| !self.streams.contains(*name)).count();
                if self.streams.len() + new > self.venue.limits.streams_per_connection {
                    return Err(Refusal {
                        id: request.id,
                        code: 2,
                        message: "Invalid request: too many streams on one connection".to_owned(),
                    });
                }
                self.subscribe(streams);
                json!(null)
            }
            Command::Unsubscribe(streams) => {
                for stream in streams {
                    if self.streams.shift_remove(&stream) {
                        self.venue.hub.unsubscribe(&self.peer, &stream);
                    }
                }
                json!(null)
            }
            Command::ListSubscriptions => json!(self.streams),
            Command::SetCombined(on) => {
                self.peer.combined.store(on, Ordering::Relaxed);
                json!(null)
            }
            Command::GetCombined => json!(self.peer.combined.load(Ordering::Relaxed)),
        };
        Ok(json!({"result": result, "id": request.id}).to_string())
    }

    fn subscribe(&mut self, streams: Vec<String>) {
        for stream in streams {
            if self.streams.insert(stream.clone()) {
                self.venue.hub.subscribe(&self.peer, &stream);
            }
            if let Some(replay) = &self.venue.replay {
                replay.note_subscription(&stream);
            }
        }
    }
}
