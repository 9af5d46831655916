//! Tools of other MCP servers, as tools of ours.
