//! Why a table could not be read.

use crate::plan::PlanError;
use engine::RunError;
use std::fmt;

/// Why a table could not be read.
#[derive(Debug)]
pub enum TableError {
    /// The request has an error.
    Plan(PlanError),
    /// The run failed.
    Run(RunError),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Plan(error) => error.fmt(f),
            TableError::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TableError {}
