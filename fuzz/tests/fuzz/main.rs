//! What must hold for every input, tried with the corpora and with mutations of them; and proof that
//! faults are found and told.

mod made;
mod planted;
mod targets;
