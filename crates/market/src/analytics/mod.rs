//! Pure functions over books, trades and candles; one module a family.
