//! PLT: what lies below: metrics, SQLite, HTTP/2, pools.

mod connections;
mod crowds;
mod h2;
mod labels;
