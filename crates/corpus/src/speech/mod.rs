//! Speeches in a parliament.
//!
//! - [`aliases`]: one name for what goes by several;
//! - `dates`: days as people write them;
//! - [`rules`]: a draft becomes a speech with its speaker, party, chamber and day, or is refused with the reason;
//! - `xml`: the transcript of a sitting, in the form in which the Australian parliament publishes it.

pub mod aliases;
pub(crate) mod dates;
pub mod rules;
pub(crate) mod xml;

pub use aliases::Aliases;
pub use rules::SpeechRules;
