//! Which symbols there are, and what people call them.
