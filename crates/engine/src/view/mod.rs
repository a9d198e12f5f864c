//! What reads of the state look like, apart from the commands.
