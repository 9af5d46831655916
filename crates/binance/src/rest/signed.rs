//! Signed calls of an account. They are never shared, and sent again only if the exchange refused their time before
//! anything else.

use reqwest::Method;

use super::answers::Decoded;
use super::client::{Rest, decoded};
use super::error::RestError;
use super::request::Request;
use super::sign::Signer;
use crate::model::Millis;
use crate::moment::Stamped;

/// The exchange's code for a time too far from its own: refused before anything is done.
const CLOCK_SKEW: i64 = -1021;

impl Rest {
    pub async fn signed<T>(
        &self,
        signer: &Signer,
        method: Method,
        request: Request,
        read: fn(&[u8]) -> Decoded<T>,
    ) -> Result<Stamped<T>, RestError> {
        if self.clock_offset_ms().is_none() {
            self.learn_time().await?;
        }
        let first = self.signed_once(signer, &method, &request, read).await;
        if first.as_ref().err().and_then(RestError::code) != Some(CLOCK_SKEW) {
            return first;
        }
        self.learn_time().await?;
        self.signed_once(signer, &method, &request, read).await
    }

    /// If this fails, nothing was sent.
    async fn learn_time(&self) -> Result<(), RestError> {
        let time = self.server_time().await;
        time.map(drop).map_err(|error| RestError::NoTime(Box::new(error)))
    }

    async fn signed_once<T>(
        &self,
        signer: &Signer,
        method: &Method,
        request: &Request,
        read: fn(&[u8]) -> Decoded<T>,
    ) -> Result<Stamped<T>, RestError> {
        let request = signer.sign(request.clone(), method.clone(), self.exchange_now());
        let raw = self.inner.send(&request, self.priority).await?;
        decoded(raw, request.endpoint, read)
    }

    /// The exchange's time as far as it is known.
    fn exchange_now(&self) -> Millis {
        let own = self.clock().now().as_millisecond();
        own.saturating_add(self.clock_offset_ms().unwrap_or(0))
    }
}
