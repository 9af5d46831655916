//! Why there was no answer. What matters is how far the request had come, because an order may have arrived.

use std::error::Error as StdError;
use std::io;

use super::error::Network;

/// Why a server's certificate is not trusted, or another TLS error.
pub fn distrust(error: &rustls::Error) -> String {
    use rustls::CertificateError as Wrong;
    let rustls::Error::InvalidCertificate(wrong) = error else {
        return error.to_string();
    };
    let wrong = match wrong {
        Wrong::UnknownIssuer => "is from an authority that this system does not know",
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => "is for another name",
        Wrong::Expired | Wrong::ExpiredContext { .. } => "has expired",
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "is not valid yet",
        Wrong::Revoked => "has been revoked",
        other => return format!("its certificate is not accepted ({other})"),
    };
    format!("its certificate {wrong}")
}

pub(super) fn explain(error: &reqwest::Error, host: String) -> Network {
    let stage = match (error.is_connect(), error.is_timeout()) {
        (true, true) => return Network::Unreachable(host),
        (true, false) => Stage::Connecting,
        (false, true) => return Network::Timeout(host),
        (false, false) => Stage::Connected,
    };
    failed(stage, error, host)
}

/// How far a request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing of it was sent.
    Connecting,
    /// It may have arrived, whatever went wrong then.
    Connected,
}

fn failed(stage: Stage, error: &(dyn StdError + 'static), host: String) -> Network {
    if stage == Stage::Connected {
        return Network::BrokenOff(host);
    }
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<rustls::Error>() {
            let why = distrust(refused);
            return Network::Tls { host, why };
        }
        let io = inner.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            return Network::Refused(host);
        }
        // The connector has no error type for it.
        if inner.to_string().starts_with("dns error") {
            return Network::Dns(host);
        }
        // The error inside an I/O error is not its source.
        let wrapped = io.and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => inner.source(),
        };
    }
    Network::Unreachable(host)
}

#[cfg(test)]
mod tests {
    use super::super::error::RestError;
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request")]
    struct Sending(#[source] io::Error);

    /// A record that cannot be read, or a connection that is refused, says "not sent" only while connecting.
    #[test]
    fn connected_request_may_have_arrived() {
        let host = || "api.example".to_owned();
        for cause in [
            io::Error::other(rustls::Error::DecryptError),
            io::Error::from(io::ErrorKind::ConnectionRefused),
            io::Error::other("dns error: no such name"),
        ] {
            let error = Sending(cause);
            let before = RestError::Network(failed(Stage::Connecting, &error, host()));
            assert!(!before.leaves_outcome_unknown(), "{before:?}");
            assert!(
                !matches!(before, RestError::Network(Network::Unreachable(_))),
                "{before:?}"
            );
            let after = failed(Stage::Connected, &error, host());
            assert_eq!(after, Network::BrokenOff(host()));
            assert!(RestError::Network(after).leaves_outcome_unknown());
        }
    }
}
