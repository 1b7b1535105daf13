//! eras
