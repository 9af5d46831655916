//! Why there was no answer. What matters is how far the request had come, because an order may have arrived.

use std::error::Error as StdError;
use std::io;

use super::error::Network;

/// Why a stream to the host could not be opened, for the operator.
pub(crate) fn root_cause(error: &reqwest::Error, host: &str) -> String {
    if let Network::Tls(why) = explain(error) {
        return format!("no secure connection to {host}: {why}");
    }
    let mut cause: &dyn StdError = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("{host}: {cause}")
}

/// Why a server's certificate is not trusted, or another TLS error.
fn distrust(error: &rustls::Error) -> String {
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

/// Once connected, a request may have arrived, whatever went wrong then.
pub(super) fn explain(error: &reqwest::Error) -> Network {
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => Network::Unreachable,
        (true, false) => unconnected(error),
        (false, true) => Network::Timeout,
        (false, false) => Network::BrokenOff,
    }
}

/// Nothing of the request was sent.
fn unconnected(error: &(dyn StdError + 'static)) -> Network {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refused) = inner.downcast_ref::<rustls::Error>() {
            return Network::Tls(distrust(refused));
        }
        let io = inner.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            return Network::Refused;
        }
        // The connector has no error type for it.
        if inner.to_string().starts_with("dns error") {
            return Network::Dns;
        }
        // The error inside an I/O error is not its source.
        let wrapped = io.and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => inner.source(),
        };
    }
    Network::Unreachable
}

#[cfg(test)]
mod tests {
    use super::super::error::RestError;
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request")]
    struct Sending(#[source] io::Error);

    #[test]
    fn failed_connection_has_its_cause() {
        for cause in [
            io::Error::other(rustls::Error::DecryptError),
            io::Error::from(io::ErrorKind::ConnectionRefused),
            io::Error::other("dns error: no such name"),
        ] {
            let network = unconnected(&Sending(cause));
            assert!(!matches!(network, Network::Unreachable), "{network:?}");
            assert!(!RestError::Network(network).leaves_outcome_unknown());
        }
        assert!(RestError::Network(Network::BrokenOff).leaves_outcome_unknown());
    }
}
