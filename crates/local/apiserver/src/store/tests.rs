//! The store on both journals.
