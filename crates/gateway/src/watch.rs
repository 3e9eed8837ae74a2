//! Reads the rules back while packets pass, and puts them back, on a thread of its own: the programs of the firewall take
//! milliseconds.

use crate::error::Error;
use crate::rules::{ReadBack, Rules};
use penstock_linux::nfqueue::{self, Listed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// What is asked of the thread: one of the functions below.
pub type Order = fn(&Rules) -> Result<Answer, Error>;

#[derive(Debug)]
pub enum Answer {
    /// What was read, with the queues of the kernel before and after that.
    Read(ReadBack, [Vec<Listed>; 2]),
    Closed,
    Failed(String),
}

/// The thread that runs the programs of the firewall. Its owner sends orders to it and reads its answers later.
#[derive(Debug)]
pub struct Watch {
    /// `None` after the end.
    orders: Option<SyncSender<Order>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn start(rules: Rules) -> Result<Self, Error> {
        let (orders, todo) = sync_channel::<Order>(4);
        let (done, answers) = sync_channel(16);
        let work = move || {
            for order in todo {
                let answer = order(&rules).unwrap_or_else(|error| Answer::Failed(error.to_string()));
                if done.send(answer).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("rules".into()).spawn(work);
        let thread = thread.map_err(Error::io("cannot start a thread"))?;
        Ok(Self { orders: Some(orders), answers, thread: Some(thread) })
    }

    pub fn ask(&self, order: Order) {
        let _ = self.orders.as_ref().map(|orders| orders.try_send(order));
    }

    /// Ends the thread: when it has done what was asked, nobody writes rules any more.
    pub fn end(&mut self) {
        self.orders = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }

    pub fn next(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

pub fn read(rules: &Rules) -> Result<Answer, Error> {
    let before = nfqueue::listed();
    let read = rules.read_back()?;
    Ok(Answer::Read(read, [before, nfqueue::listed()]))
}

/// Puts back the rules that the guard took away.
pub fn close(rules: &Rules) -> Result<Answer, Error> {
    rules.chains.close().map_or_else(|_| renew(rules), |()| Ok(Answer::Closed))
}

/// Writes all rules anew, because some are missing.
pub fn renew(rules: &Rules) -> Result<Answer, Error> {
    rules.chains.remove()?;
    rules.install().map(|()| Answer::Closed)
}
