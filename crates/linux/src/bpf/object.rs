//! An object of `bpf/` in the kernel: its maps, and its programs, which go with this value wherever they are attached by TCX.

use crate::bpf::error::Error;
use aya::maps::{Map, MapError};
use aya::programs::tc::{SchedClassifierLinkId, TcAttachOptions};
use aya::programs::{LinkOrder, Program, ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, TestRun as _, TestRunOptions, TestRunResult};

/// Why this build has no programs; empty if it has them.
pub const MISSING: &str = env!("PENSTOCK_BPF_MISSING");

/// How often a program is given to the verifier.
const ATTEMPTS: usize = 5;

/// Loads a program. A signal that comes meanwhile ends the work of the verifier, so it is tried again, as libbpf does.
pub(super) fn again_if_interrupted(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    let is_interrupted = |error: &ProgramError| match error {
        ProgramError::LoadError { io_error, .. } => io_error.raw_os_error() == Some(libc::EAGAIN),
        _ => false,
    };
    for _ in 1..ATTEMPTS {
        match load() {
            Err(error) if is_interrupted(&error) => {}
            done => return done,
        }
    }
    load()
}

pub(super) struct Object {
    pub ebpf: Ebpf,
    /// Where classifiers are attached.
    links: Vec<(&'static str, String, SchedClassifierLinkId)>,
}

impl Object {
    /// Loads the maps, of which some have room for so many entries, and these classifiers.
    pub fn load(bytes: &[u8], rooms: &[(&str, u32)], classifiers: &[&'static str]) -> Result<Self, Error> {
        if !MISSING.is_empty() {
            return Err(Error::NotBuilt(MISSING));
        }
        let mut loader = EbpfLoader::new();
        for (map, most) in rooms {
            loader.map_max_entries(map, *most);
        }
        let mut object = Self { ebpf: loader.load(bytes).map_err(Error::refused("the maps"))?, links: Vec::new() };
        for name in classifiers {
            let classifier = object.classifier(name)?;
            again_if_interrupted(|| classifier.load()).map_err(Error::refused("a program"))?;
        }
        Ok(object)
    }

    pub fn program<'a, P>(&'a mut self, name: &str) -> Result<&'a mut P, Error>
    where
        &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
    {
        let program = self.ebpf.program_mut(name).ok_or(Error::NotBuilt("a program is not in the object"))?;
        program.try_into().map_err(Error::refused("a program"))
    }

    pub fn classifier(&mut self, name: &str) -> Result<&mut SchedClassifier, Error> {
        self.program(name)
    }

    pub fn map<M: TryFrom<Map, Error = MapError>>(&mut self, name: &'static str) -> Result<M, Error> {
        let map = self.ebpf.take_map(name).ok_or(Error::NotBuilt("a map is not in the object"))?;
        M::try_from(map).map_err(Error::refused("a map"))
    }

    /// Attaches a classifier to an interface by TCX.
    pub fn attach(&mut self, name: &'static str, interface: &str, hook: TcAttachType) -> Result<(), Error> {
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        self.attach_by(name, interface, hook, options).map_err(|e| Error::NoTcx(interface.to_owned(), e.to_string()))
    }

    /// Attaches a classifier to an interface.
    pub fn attach_by(
        &mut self,
        name: &'static str,
        interface: &str,
        hook: TcAttachType,
        by: TcAttachOptions,
    ) -> Result<(), Error> {
        let link = self.classifier(name)?.attach_with_options(interface, hook, by);
        self.links.push((name, interface.to_owned(), link.map_err(Error::refused("a filter of clsact"))?));
        Ok(())
    }

    /// Detaches classifiers from the interfaces whose names these are; from one that is gone they are detached already.
    pub fn detach(&mut self, which: impl Fn(&str) -> bool) {
        let (gone, kept): (Vec<_>, _) = std::mem::take(&mut self.links).into_iter().partition(|link| which(&link.1));
        self.links = kept;
        for (name, _, link) in gone {
            let _ = self.classifier(name).map(|classifier| classifier.detach(link));
        }
    }

    /// Runs a classifier once.
    pub fn test(&self, name: &str, options: TestRunOptions<'_>) -> Result<TestRunResult, Error> {
        let program = self.ebpf.program(name).ok_or(Error::NotBuilt("a program is not in the object"))?;
        let program: &SchedClassifier = program.try_into().map_err(Error::refused("a program"))?;
        program.test_run(options).map_err(Error::refused("a test run"))
    }
}
