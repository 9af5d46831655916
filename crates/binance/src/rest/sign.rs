//! Signs requests of an account, over exactly what is sent.

use std::fmt;

use data_encoding::{BASE64, HEXLOWER};
use reqwest::Method;
use reqwest::header::HeaderValue;
use ring::hmac;
use ring::signature::Ed25519KeyPair;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use super::error::RestError;
use super::request::{Request, append};
use crate::model::Millis;

/// How late a request may arrive, in milliseconds: the exchange's default.
const RECV_WINDOW_MS: &str = "5000";

enum Secret {
    Hmac(hmac::Key),
    Ed25519(Box<Ed25519KeyPair>),
}

/// An API key and its secret. Neither is ever printed.
pub struct Signer {
    key: HeaderValue,
    secret: Secret,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(secret)")
    }
}

impl Signer {
    /// The secret of the key: what the exchange shows for HMAC keys, or an Ed25519 private key (PKCS#8) as PEM.
    pub fn new(api_key: &str, secret: &str) -> Result<Self, RestError> {
        let refuse = |why: &str| RestError::Invalid(format!("the exchange's API {why}"));
        let (api_key, secret) = (api_key.trim(), secret.trim());
        if api_key.is_empty() || secret.is_empty() {
            return Err(refuse("key and its secret are both needed"));
        }
        let mut key = HeaderValue::from_str(api_key).map_err(|_| refuse("key has characters no header can carry"))?;
        key.set_sensitive(true);
        let secret = if secret.contains("-----BEGIN") {
            let not = || refuse("secret looks like a private key but is not an Ed25519 key in PKCS#8");
            Secret::Ed25519(Box::new(ed25519(secret).ok_or_else(not)?))
        } else {
            Secret::Hmac(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
        };
        Ok(Self { key, secret })
    }

    /// Adds the time and the signature. A POST goes as a form, so that no address contains it; the signature is over
    /// the percent-encoded query or form.
    pub(super) fn sign(&self, mut request: Request, method: Method, timestamp: Millis) -> Request {
        let mut signed = std::mem::take(&mut request.query);
        append(&mut signed, "recvWindow", RECV_WINDOW_MS);
        append(&mut signed, "timestamp", &timestamp.to_string());
        let signature = self.signature(&signed);
        append(&mut signed, "signature", &signature);
        if method == Method::POST {
            request.form = Some(signed);
        } else {
            request.query = signed;
        }
        request.method = method;
        request.key = Some(self.key.clone());
        request
    }

    fn signature(&self, text: &str) -> String {
        match &self.secret {
            Secret::Hmac(key) => HEXLOWER.encode(hmac::sign(key, text.as_bytes()).as_ref()),
            Secret::Ed25519(pair) => BASE64.encode(pair.sign(text.as_bytes()).as_ref()),
        }
    }
}

fn ed25519(pem: &str) -> Option<Ed25519KeyPair> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).ok()?;
    // Most tools leave the public key out, so that there is nothing to check it against.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::Endpoint;

    const KEY: &str = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A";
    const SECRET: &str = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j";

    fn order() -> Request {
        Request::new(Endpoint::ORDER)
            .symbol("LTCBTC")
            .expect("symbol")
            .with("side", "BUY")
            .with("type", "LIMIT")
            .with("timeInForce", "GTC")
            .with("quantity", "1")
            .with("price", "0.1")
    }

    /// The example of the exchange's own documentation.
    #[test]
    fn documented_order_has_its_signature() {
        let signer = Signer::new(KEY, SECRET).expect("signer");
        let signed = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000\
                      &timestamp=1499827319559&signature=c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71";
        let posted = signer.sign(order(), Method::POST, 1_499_827_319_559);
        assert_eq!((posted.query.as_str(), posted.form.as_deref()), ("", Some(signed)));
        let asked = signer.sign(order(), Method::GET, 1_499_827_319_559);
        assert_eq!((asked.query.as_str(), asked.form), (signed, None));
        assert!(asked.key.is_some_and(|key| key.is_sensitive() && key == KEY));
    }

    /// Key and signature of RFC 8032, 7.1, test 2: the message is the one byte `r`.
    #[test]
    fn ed25519_matches_the_rfc() {
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n\
                   -----END PRIVATE KEY-----";
        let signer = Signer::new(KEY, pem).expect("signer");
        assert_eq!(
            signer.signature("r"),
            "kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==",
        );
    }

    #[test]
    fn invalid_keys_are_refused_and_not_printed() {
        assert!(Signer::new("", SECRET).is_err());
        assert!(Signer::new("a\nb", SECRET).is_err());
        let error =
            Signer::new(KEY, "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----").expect_err("RSA");
        assert!(error.to_string().contains("Ed25519") && !error.to_string().contains("AAAA"));
        let printed = format!("{:?}", Signer::new(KEY, SECRET).expect("signer"));
        assert!(!printed.contains("vmPU") && !printed.contains("NhqP"));
        let request = Signer::new(KEY, SECRET).expect("signer").sign(order(), Method::POST, 1);
        assert!(!format!("{:?}", request.key).contains("vmPU"));
    }
}
