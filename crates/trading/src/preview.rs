//! Preview tokens. Each is valid for one order and one minute, and places it once; a repeated call gets that order's
//! outcome.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::watch;
use tribune_core::{Clock, Error, Principal, Result};

use super::answers::Changed;
use super::order::Order;

pub(super) const VALID_FOR: Duration = Duration::from_secs(60);
/// A used token returns its outcome for this long; after that the journal has it.
const ANSWERS_FOR: Duration = Duration::from_secs(600);
/// How many previews are kept; the oldest are dropped.
const MAX_KEPT: usize = 100;
/// With a prefix, names stay within the exchange's 36 characters.
const NAME_BYTES: usize = 12;

struct Preview {
    order: Order,
    principal: Principal,
    issued: Instant,
    /// The progress of its order, once the token is used.
    progress: Option<watch::Receiver<Progress>>,
}

impl Preview {
    /// Also if the caller who used it gave up before anything was sent.
    fn is_unused(&self) -> bool {
        self.progress.as_ref().is_none_or(|progress| {
            // In this order: a finished order is not in progress.
            progress.has_changed().is_err() && matches!(*progress.borrow(), Progress::CheckedOrder)
        })
    }

    fn is_settled(&self) -> bool {
        let settled = |progress: &watch::Receiver<Progress>| matches!(*progress.borrow(), Progress::Settled(_));
        self.progress.as_ref().is_some_and(settled)
    }

    fn is_kept(&self, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.issued);
        let keep = if self.is_unused() { VALID_FOR } else { ANSWERS_FOR };
        age < keep
    }
}

/// The progress of an order whose token was used.
enum Progress {
    /// Nothing was sent yet.
    CheckedOrder,
    Sent,
    Settled(Settled),
}

/// The outcome of an order, shared by all callers.
pub(super) type Settled = std::result::Result<Arc<Changed>, Arc<Error>>;

/// The right to place an order. If it is dropped before sending, the next caller gets it.
pub(super) struct Claim {
    pub(super) client_order_id: String,
    progress: watch::Sender<Progress>,
}

impl Claim {
    /// From here on the order may be at the exchange.
    pub(super) fn begin(&self) -> Placing {
        self.progress.send_replace(Progress::Sent);
        Placing {
            client_order_id: self.client_order_id.clone(),
            progress: self.progress.subscribe(),
        }
    }

    pub(super) fn settle(self, outcome: Result<Changed>) {
        let settled = outcome.map(Arc::new).map_err(Arc::new);
        self.progress.send_replace(Progress::Settled(settled));
    }
}

/// An order that is being placed or has been placed.
pub(super) struct Placing {
    pub(super) client_order_id: String,
    progress: watch::Receiver<Progress>,
}

impl Placing {
    /// Waits for the outcome; `None` if the order was given up before anything was sent.
    pub(super) async fn settled(mut self) -> Option<Settled> {
        let is_settled = |progress: &Progress| matches!(progress, Progress::Settled(_));
        // An error means that the sender is gone.
        drop(self.progress.wait_for(is_settled).await);
        match &*self.progress.borrow() {
            Progress::CheckedOrder => None,
            Progress::Settled(settled) => Some(settled.clone()),
            Progress::Sent => Some(Err(Arc::new(Error::internal(format!(
                "execution status unknown: look with binance_get_order before trying again (client_order_id {})",
                self.client_order_id
            ))))),
        }
    }
}

/// What a token allows.
pub(super) enum Redeemed {
    First(Claim),
    /// It was used before, for the same order.
    Again(Placing),
    /// It was used before, for another order.
    ForAnother(Placing),
    /// Not known here. An order placed with it would have this client order id.
    Unknown(String),
}

pub(super) struct Previews {
    clock: Arc<dyn Clock>,
    random: SystemRandom,
    /// By token, oldest first.
    kept: Mutex<IndexMap<String, Preview>>,
}

/// A new preview.
pub(super) struct Ticket {
    pub(super) token: String,
    /// The client order id that the order will have.
    pub(super) client_order_id: String,
}

impl Previews {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            random: SystemRandom::new(),
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, IndexMap<String, Preview>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn issue(&self, order: &Order, principal: &Principal) -> Result<Ticket> {
        let token = self.name("preview-")?;
        let client_order_id = order_named_by(&token);
        let now = self.clock.monotonic();
        let preview = Preview {
            order: order.clone(),
            principal: principal.clone(),
            issued: now,
            progress: None,
        };
        let mut kept = self.kept();
        kept.retain(|_, preview| preview.is_kept(now));
        if kept.len() >= MAX_KEPT {
            // Keep tokens of orders in progress.
            let oldest = |is: fn(&Preview) -> bool| kept.values().position(is);
            let oldest = oldest(Preview::is_unused)
                .or_else(|| oldest(Preview::is_settled))
                .unwrap_or(0);
            kept.shift_remove_index(oldest);
        }
        kept.insert(token.clone(), preview);
        Ok(Ticket { token, client_order_id })
    }

    /// Of concurrent calls with the same token, one may place the order.
    pub(super) fn redeem(&self, token: &str, order: &Order, principal: &Principal) -> Result<Redeemed> {
        let refuse = |why: &str| {
            Err(Error::invalid_argument(format!(
                "the order was not sent: {why}; call again without preview_token for a new preview"
            )))
        };
        let client_order_id = order_named_by(token);
        let mut kept = self.kept();
        // Another principal's token counts as unknown.
        let preview = kept.get_mut(token).filter(|preview| preview.principal == *principal);
        let Some(preview) = preview else {
            return Ok(Redeemed::Unknown(client_order_id));
        };
        let is_same = preview.order == *order;
        let used = preview.progress.clone().filter(|_| !preview.is_unused());
        if let Some(progress) = used {
            let placing = Placing {
                client_order_id,
                progress,
            };
            return Ok(if is_same {
                Redeemed::Again(placing)
            } else {
                Redeemed::ForAnother(placing)
            });
        }
        if !preview.is_kept(self.clock.monotonic()) {
            return refuse("the preview is older than 60 s");
        }
        if !is_same {
            kept.shift_remove(token);
            return refuse("the preview was of another order");
        }
        let (progress, watched) = watch::channel(Progress::CheckedOrder);
        preview.progress = Some(watched);
        Ok(Redeemed::First(Claim {
            client_order_id,
            progress,
        }))
    }

    pub(super) fn name(&self, prefix: &str) -> Result<String> {
        let mut bytes = [0u8; NAME_BYTES];
        self.random
            .fill(&mut bytes)
            .map_err(|_| Error::internal("this machine gives no random numbers; nothing was sent"))?;
        Ok(named(prefix, &bytes))
    }
}

/// The client order id for a token: a hash, so that the journal can recognise the token after a restart without revealing
/// it.
fn order_named_by(token: &str) -> String {
    let digest = digest::digest(&digest::SHA256, token.as_bytes());
    named("tribune-", &digest.as_ref()[..NAME_BYTES])
}

fn named(prefix: &str, bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(prefix.to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Side, Terms};
    use tribune_binance::number::Quantity;
    use tribune_binance::testing::ManualClock;

    fn order(quantity: i128) -> Order {
        Order {
            symbol: "BTCUSDT".to_owned(),
            side: Side::Buy,
            terms: Terms::Market(Quantity::from_units(quantity)),
        }
    }

    fn claim(redeemed: Result<Redeemed>) -> Claim {
        match redeemed {
            Ok(Redeemed::First(claim)) => claim,
            _ => panic!("the token cannot be used"),
        }
    }

    fn is_unknown(redeemed: Result<Redeemed>) -> bool {
        matches!(redeemed, Ok(Redeemed::Unknown(_)))
    }

    #[test]
    fn a_token_is_good_once_for_one_order_of_one_caller_for_a_minute() {
        let clock = Arc::new(ManualClock::at(0));
        let previews = Previews::new(clock.clone());
        let me = Principal::Local;
        let issue = || previews.issue(&order(5), &me).expect("ticket");
        let why = |outcome: Result<Redeemed>| outcome.err().expect("refused").message().to_owned();

        let ticket = issue();
        assert!(ticket.client_order_id.len() <= 36);
        let first = claim(previews.redeem(&ticket.token, &order(5), &me));
        assert_eq!(first.client_order_id, ticket.client_order_id);
        for _ in 0..2 {
            let again = previews.redeem(&ticket.token, &order(5), &me);
            assert!(matches!(again, Ok(Redeemed::Again(placing)) if placing.client_order_id == ticket.client_order_id));
        }
        let other = previews.redeem(&ticket.token, &order(6), &me);
        assert!(matches!(other, Ok(Redeemed::ForAnother(_))));

        let token = issue().token;
        assert!(why(previews.redeem(&token, &order(6), &me)).contains("another order"));
        assert!(is_unknown(previews.redeem(&token, &order(5), &me)), "used up");

        let token = issue().token;
        assert!(is_unknown(previews.redeem(&token, &order(5), &Principal::Anonymous)));
        drop(claim(previews.redeem(&token, &order(5), &me)));

        let token = issue().token;
        clock.advance_ms(59_999);
        let later = issue().token;
        clock.advance_ms(1);
        assert!(why(previews.redeem(&token, &order(5), &me)).contains("older than 60 s"));
        claim(previews.redeem(&later, &order(5), &me));
    }

    #[tokio::test]
    async fn what_was_given_up_unsent_can_be_had_and_what_was_sent_cannot() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)));
        let token = previews.issue(&order(5), &Principal::Local).expect("ticket").token;
        let redeem = || previews.redeem(&token, &order(5), &Principal::Local);
        let first = claim(redeem());
        let Ok(Redeemed::Again(waiting)) = redeem() else {
            panic!("somebody has it")
        };
        drop(first);
        assert!(waiting.settled().await.is_none());

        let second = claim(redeem());
        let placing = second.begin();
        let Ok(Redeemed::Again(waiting)) = redeem() else {
            panic!("somebody sends it")
        };
        drop(second);
        for placing in [placing, waiting] {
            let settled = placing.settled().await.expect("sent");
            let error = settled.expect_err("outcome unknown");
            assert!(error.message().starts_with("execution status unknown"), "{error}");
        }
        assert!(matches!(redeem(), Ok(Redeemed::Again(_))), "never free again");
    }

    #[test]
    fn previews_are_bounded_and_what_is_under_way_stays() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)));
        let issue = || previews.issue(&order(1), &Principal::Local).expect("ticket").token;
        let redeem = |token: &str| previews.redeem(token, &order(1), &Principal::Local);
        let (used, unused) = (issue(), issue());
        let _claim = claim(redeem(&used));
        for _ in 1..MAX_KEPT {
            issue();
        }
        assert_eq!(previews.kept().len(), MAX_KEPT);
        assert!(matches!(redeem(&used), Ok(Redeemed::Again(_))));
        assert!(is_unknown(redeem(&unused)));
    }
}
