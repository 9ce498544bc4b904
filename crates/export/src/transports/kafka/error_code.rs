//! The error numbers of a broker (`Errors` in Kafka), and what follows from them.

use std::io::{self, ErrorKind};

/// An error number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ErrorCode(pub(super) i16);

/// The consequence of an answer for the messages of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The broker has them already.
    Taken,
    /// It will never take all of them together.
    Split,
    /// It does not know this producer any more: a new one is needed.
    NewProducer,
    /// The same batch must be sent again, perhaps to another broker.
    Again,
}

impl ErrorCode {
    pub(super) const UNKNOWN_PARTITION: ErrorCode = ErrorCode(3);
    pub(super) const NO_LEADER: ErrorCode = ErrorCode(5);
    /// UNSUPPORTED_SASL_MECHANISM.
    pub(super) const NO_MECHANISM: ErrorCode = ErrorCode(33);

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// True for errors of a topic that was created a moment ago, or a broker that has just started.
    pub(super) fn is_of_start(self) -> bool {
        matches!(self.0, 3 | 5 | 14 | 15)
    }

    pub(super) fn remedy(self) -> Remedy {
        match self.0 {
            46 => Remedy::Taken,
            10 | 18 | 87 => Remedy::Split,
            45 | 47 | 59 | 90 => Remedy::NewProducer,
            _ => Remedy::Again,
        }
    }

    /// The number in words, with what to do about it.
    pub(super) fn text(self) -> String {
        let known = match self.0 {
            2 => "the batch arrived damaged",
            3 => "the topic does not exist, and the broker does not create it: kafka-topics.sh --create",
            5 => "no broker leads the partition now",
            6 => "another broker leads the partition now",
            7 => "the replicas did not answer in time",
            10 | 18 => "a message is larger than the topic allows (max.message.bytes)",
            14 | 15 => "the broker is still starting",
            17 => "the broker refuses the topic's name",
            19 | 20 => "fewer replicas are in sync than the topic demands (min.insync.replicas)",
            29 => "the user may not write to the topic: kafka-acls.sh --add --producer",
            31 => {
                "the user may not do this in the cluster: before Kafka 2.8, kafka-acls.sh --add --producer --idempotent"
            }
            33 => "the broker does not support this way to log in",
            34 => "the broker expects a login: kafka://USER@… or kafka+tls://",
            45 => "the broker has other messages of this producer than expected",
            56 => "a disk of the broker has failed",
            58 => "the broker does not accept the user or the password",
            59 => "the broker does not know this producer any more",
            47 | 90 => "another program uses this producer's number",
            87 => "the broker rejects a message",
            _ => return format!("the broker answers with error {}", self.0),
        };
        format!("{known} (error {})", self.0)
    }

    /// The number as an error of an attempt at something.
    pub(super) fn error(self, what: &str) -> io::Error {
        let kind = if matches!(self.0, 29 | 31 | 58) { ErrorKind::PermissionDenied } else { ErrorKind::Other };
        io::Error::new(kind, format!("{what}: {}", self.text()))
    }
}
