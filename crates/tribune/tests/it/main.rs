//! The shipped binary, tried as its users try it. One test binary, because each costs a link.

mod support;

mod clients;
mod conformance;
mod nginx;
