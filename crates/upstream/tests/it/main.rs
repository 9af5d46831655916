//! Against real servers that are not ours: the official Python and TypeScript SDKs, in both eras, as programs
//! and behind URLs; and against things that are no servers at all.

mod calls;
mod eras;
mod hostile;
mod life;
mod listing;
mod support;
