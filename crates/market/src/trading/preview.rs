//! Tokens that make an order take two steps: each good for one order, once, for a minute.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use ring::rand::{SecureRandom, SystemRandom};
use tribune_core::{Clock, Error, Principal, Result};

use super::order::Order;

pub(super) const VALID_FOR: Duration = Duration::from_secs(60);
/// Most previews that wait at one time; the oldest make room.
const MAX_WAITING: usize = 100;

struct Preview {
    order: Order,
    principal: Principal,
    client_order_id: String,
    expires: Instant,
}

pub(super) struct Previews {
    clock: Arc<dyn Clock>,
    random: SystemRandom,
    /// By token, oldest first.
    waiting: Mutex<IndexMap<String, Preview>>,
}

/// A new preview.
pub(super) struct Ticket {
    pub(super) token: String,
    /// What the order will be called by the exchange.
    pub(super) client_order_id: String,
}

impl Previews {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            random: SystemRandom::new(),
            waiting: Mutex::default(),
        }
    }

    pub(super) fn issue(&self, order: &Order, principal: &Principal) -> Result<Ticket> {
        let token = self.name("preview-")?;
        let client_order_id = self.name("tribune-")?;
        let now = self.clock.monotonic();
        let preview = Preview {
            order: order.clone(),
            principal: principal.clone(),
            client_order_id: client_order_id.clone(),
            expires: now + VALID_FOR,
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, preview| preview.expires > now);
        if waiting.len() >= MAX_WAITING {
            waiting.shift_remove_index(0);
        }
        waiting.insert(token.clone(), preview);
        Ok(Ticket { token, client_order_id })
    }

    /// The id to place the order under. Whatever comes of it, the token is used up.
    pub(super) fn redeem(&self, token: &str, order: &Order, principal: &Principal) -> Result<String> {
        let refuse = |why: &str| {
            Error::invalid_argument(format!(
                "the order was not sent: {why}; call again without preview_token for a new preview"
            ))
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let preview = waiting.shift_remove(token);
        drop(waiting);
        // A token of somebody else's is as good as none.
        let preview = preview.filter(|preview| preview.principal == *principal);
        let preview = preview.ok_or_else(|| refuse("the preview_token is not known, or has been used"))?;
        if preview.expires <= self.clock.monotonic() {
            return Err(refuse("the preview is older than 60 s"));
        }
        if preview.order != *order {
            return Err(refuse("the preview was of another order"));
        }
        Ok(preview.client_order_id)
    }

    /// Within the 36 characters that the exchange takes for an order's name.
    pub(super) fn name(&self, prefix: &str) -> Result<String> {
        let mut bytes = [0u8; 12];
        self.random
            .fill(&mut bytes)
            .map_err(|_| Error::internal("this machine gives no random numbers; nothing was sent"))?;
        Ok(bytes
            .iter()
            .fold(prefix.to_owned(), |name, byte| format!("{name}{byte:02x}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Quantity;
    use crate::rest::testing::ManualClock;
    use crate::trading::order::{Side, Terms};

    fn order(quantity: i128) -> Order {
        Order {
            symbol: "BTCUSDT".to_owned(),
            side: Side::Buy,
            terms: Terms::Market(Quantity::from_units(quantity)),
        }
    }

    #[test]
    fn a_token_is_good_once_for_one_order_of_one_caller_for_a_minute() {
        let clock = Arc::new(ManualClock::at(0));
        let previews = Previews::new(clock.clone());
        let me = Principal::Local;
        let issue = || previews.issue(&order(5), &me).expect("ticket");
        let why = |outcome: Result<String>| outcome.expect_err("refused").message().to_owned();

        let ticket = issue();
        assert!(ticket.client_order_id.len() <= 36);
        assert_eq!(
            previews.redeem(&ticket.token, &order(5), &me).expect("once"),
            ticket.client_order_id
        );
        assert!(why(previews.redeem(&ticket.token, &order(5), &me)).contains("has been used"));

        let token = issue().token;
        assert!(why(previews.redeem(&token, &order(6), &me)).contains("another order"));
        assert!(
            why(previews.redeem(&token, &order(5), &me)).contains("not known"),
            "used up"
        );

        let token = issue().token;
        assert!(why(previews.redeem(&token, &order(5), &Principal::Anonymous)).contains("not known"));

        let token = issue().token;
        clock.advance_ms(59_999);
        let later = issue().token;
        clock.advance_ms(1);
        assert!(why(previews.redeem(&token, &order(5), &me)).contains("older than 60 s"));
        assert!(previews.redeem(&later, &order(5), &me).is_ok());
    }

    #[test]
    fn previews_that_wait_are_bounded() {
        let previews = Previews::new(Arc::new(ManualClock::at(0)));
        let first = previews.issue(&order(1), &Principal::Local).expect("ticket").token;
        for _ in 0..MAX_WAITING {
            previews.issue(&order(1), &Principal::Local).expect("ticket");
        }
        assert_eq!(previews.waiting.lock().expect("waiting").len(), MAX_WAITING);
        assert!(previews.redeem(&first, &order(1), &Principal::Local).is_err());
    }
}
