//! Who calls, until when, and how to say "still working".

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorKind};
use crate::scope::{Scope, Scopes};
use crate::user::UserId;

/// Who is calling. Tools take the user from here and never from an argument.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The person whose account on this machine runs Tribune: a shell, stdio, or a caller with the local secret.
    Local,
    /// A caller without a token or a session.
    Anonymous,
    /// An authenticated user.
    User(UserId),
}

impl Principal {
    /// Whose data this caller has; `None` if anonymous.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::Local => Some(UserId::local()),
            Self::Anonymous => None,
            Self::User(user) => Some(user.clone()),
        }
    }
}

/// Receives the progress of a long call.
pub trait ProgressSink: Send + Sync {
    fn report(&self, done: f64, total: Option<f64>, message: Option<&str>);
}

/// Reports progress to the caller, if the caller asked for it.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn ProgressSink>>);

impl Progress {
    pub fn to(sink: Arc<dyn ProgressSink>) -> Self {
        Self(Some(sink))
    }

    pub fn report(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(sink) = &self.0 {
            sink.report(done, total, message);
        }
    }
}

/// Everything a call carries besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    pub principal: Principal,
    /// What the caller may do.
    pub scopes: Scopes,
    /// The groups of the caller.
    pub groups: Arc<[String]>,
    /// The call must have answered by then.
    pub deadline: Instant,
    /// Cancelled when the caller goes away.
    pub cancel: CancellationToken,
    pub progress: Progress,
    /// Ties every log line of the call together, and to the caller's own records.
    pub correlation_id: Arc<str>,
    /// The address of the caller, for the audit log.
    pub peer: Option<IpAddr>,
    /// Whether live data is recorded as it is answered, so that the answer can be cited. Off for pages: records are
    /// limited, and belong to answers.
    pub cites: bool,
}

impl CallContext {
    pub fn new(principal: Principal, deadline: Instant) -> Self {
        Self {
            principal,
            scopes: Scopes::ALL,
            groups: Arc::default(),
            deadline,
            cancel: CancellationToken::new(),
            progress: Progress::default(),
            correlation_id: Arc::from("-"),
            peer: None,
            cites: true,
        }
    }

    /// The same call without citation records.
    #[must_use]
    pub fn uncited(mut self) -> Self {
        self.cites = false;
        self
    }

    /// Whose personal data this call may see; `None` for an anonymous caller, or one who may not see any.
    pub fn owner(&self) -> Option<UserId> {
        self.principal.user().filter(|_| self.scopes.contains(Scope::Tasks))
    }

    /// How long the call may still take, seen from `now`.
    pub fn time_left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }

    /// The same call with an earlier deadline; a later one is ignored.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self { deadline: self.deadline.min(deadline), ..self.clone() }
    }

    /// For loops in long work: stops when the caller has gone or time is up.
    pub fn check(&self, now: Instant) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the caller cancelled the call"));
        }
        if now >= self.deadline {
            return Err(Error::new(ErrorKind::DeadlineExceeded, "the call ran out of time"));
        }
        Ok(())
    }
}
