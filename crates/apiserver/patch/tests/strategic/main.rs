//! Strategic merge patches, by their directives and at random.

mod directives;
mod properties;
