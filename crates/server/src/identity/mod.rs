//! Who is calling.
//!
//! [`Guard`] runs before every path: it checks the addressed host and the page that calls, and asks `Callers`
//! for the [`Principal`](tribune_core::Principal) of a request. Handlers find it as [`Caller`] in the request's
//! extensions and know nothing of tokens. [`Accounts`] finds the user of a token.
//!
//! - `guard`: Host, Origin and CORS;
//! - `needs`: what a caller needs for each path;
//! - `caller`: who sent a request; `callers`: from a request to its caller, and refusals;
//! - `accounts`: the users behind tokens and sessions; `tokens`: API tokens;
//! - `session`: cookies of browsers that have signed in.

mod accounts;
mod caller;
mod callers;
mod guard;
mod needs;
mod session;
mod tokens;

pub use accounts::{Accounts, Identity, Proof, SignIn};
pub use caller::Caller;
pub use guard::Guard;
pub use tokens::{NewToken, TokenUse, new_token};

pub(crate) use accounts::{NewSession, challenge};
pub(crate) use guard::check;
pub(crate) use needs::{Need, need};
pub(crate) use session::own_path;
