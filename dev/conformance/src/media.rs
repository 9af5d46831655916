//! The smallest media that are still well-formed files, base64 as the wire wants them.

pub(super) const PNG: &str = "image/png";
pub(super) const WAV: &str = "audio/wav";

/// One red pixel.
pub(super) const RED_PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4oKAAAAKkAQHdsXSBAAAAAElFTkSuQmCC";

/// Eight samples of silence, 8 kHz mono.
pub(super) const SILENCE: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";
