//! Leaves numbers and sockets to the next run.
use super::numbers::Numbers;
use nflog::{NextNumber, StoreNumbers};
use runtime::messages::print_message;
use runtime::run_state::RunState;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Stores the numbers during the run, and hands over sockets at its end.
pub(super) struct Leaving {
    pub(super) run: Arc<RunState>,
    /// None without a service manager that stores files.
    pub(super) numbers: Option<Numbers>,
    pub(super) netns_id: u64,
}

impl StoreNumbers for Leaving {
    fn store_numbers(&mut self, numbers: &[NextNumber]) {
        let Some(Err(error)) = self.numbers.as_mut().map(|file| file.write(numbers)) else { return };
        print_message(&format!("the next run cannot count the records lost in between: {error}"));
        self.numbers = None;
    }

    fn end(&mut self, sockets: &[(u16, BorrowedFd<'_>)], numbers: &[NextNumber]) {
        self.store_numbers(numbers);
        self.run.with_successor(|successor| {
            let text = match hand_over(successor, self.netns_id, sockets, numbers) {
                Ok(()) => {
                    format!("handed over {}: another run continues", groups(sockets.iter().map(|socket| socket.0)))
                }
                Err(error) => format!("cannot hand over, records are lost from now on: {error}"),
            };
            print_message(&text);
        });
    }
}

/// Sends a line per group with its socket, then the end marker.
fn hand_over(
    successor: &UnixStream,
    netns_id: u64,
    sockets: &[(u16, BorrowedFd<'_>)],
    numbers: &[NextNumber],
) -> Result<(), sys::Errno> {
    for (group, socket) in sockets {
        // A group without records starts at 0, unless it was itself taken over: then it has a number.
        let next = numbers.iter().find(|number| number.group == *group).map_or(0, |number| number.next);
        let line = format!("{netns_id} {group} {next}\n");
        sys::descriptors::send_files(successor, line.as_bytes(), &[*socket])?;
    }
    sys::descriptors::send_files(successor, b"end\n", &[])
}

/// Formats `group 1`, `groups 1, 5`.
pub(super) fn groups(numbers: impl Iterator<Item = u16>) -> String {
    let numbers: Vec<String> = numbers.map(|group| group.to_string()).collect();
    let word = if numbers.len() == 1 { "group" } else { "groups" };
    format!("{word} {}", numbers.join(", "))
}
