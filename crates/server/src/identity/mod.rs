//! Who is calling.
//!
//! [`Guard`] runs before every path: it checks the addressed host and the page that calls, and asks `Callers`
//! for the [`Principal`](tribune_core::Principal) of a request. Handlers find it as [`Caller`] in the request's
//! extensions and know nothing of tokens. [`Authenticator`] is the seam for further kinds of tokens.
//!
//! - `guard`: Host, Origin and CORS;
//! - `callers`: from a request to its principal;
//! - `tokens`: API tokens;
//! - `session`: browsers that sign in with a token and keep it in a cookie.

mod callers;
mod guard;
mod session;
mod tokens;

pub use callers::Caller;
pub use guard::Guard;
pub use tokens::{ApiTokens, Authenticator, NewToken, new_token};

pub(crate) use guard::check;
pub(crate) use session::{sign_in, sign_out};
