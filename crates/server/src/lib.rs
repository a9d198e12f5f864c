//! The composition root: a Flotilla node.
