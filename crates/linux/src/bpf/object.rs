//! An object of `bpf/` in the kernel: its maps, and its programs, which go with this value wherever they are attached by TCX.

use crate::bpf::error::Error;
use aya::maps::{Map, MapError};
use aya::programs::tc::TcAttachOptions;
use aya::programs::{LinkOrder, Program, ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, TestRun as _, TestRunOptions, TestRunResult};

/// Why this build has no programs; empty if it has them.
pub const MISSING: &str = env!("PENSTOCK_BPF_MISSING");

pub(super) struct Object(pub Ebpf);

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
        let mut object = Self(loader.load(bytes).map_err(Error::refused("the maps"))?);
        for name in classifiers {
            object.classifier(name)?.load().map_err(Error::refused("a program"))?;
        }
        Ok(object)
    }

    pub fn program<'a, P>(&'a mut self, name: &str) -> Result<&'a mut P, Error>
    where
        &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
    {
        let program = self.0.program_mut(name).ok_or(Error::NotBuilt("a program is not in the object"))?;
        program.try_into().map_err(Error::refused("a program"))
    }

    pub fn classifier(&mut self, name: &str) -> Result<&mut SchedClassifier, Error> {
        self.program(name)
    }

    pub fn map<M: TryFrom<Map, Error = MapError>>(&mut self, name: &'static str) -> Result<M, Error> {
        let map = self.0.take_map(name).ok_or(Error::NotBuilt("a map is not in the object"))?;
        M::try_from(map).map_err(Error::refused("a map"))
    }

    /// Attaches a classifier to an interface by TCX.
    pub fn attach(&mut self, name: &str, interface: &str, hook: TcAttachType) -> Result<(), Error> {
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        let attached = self.classifier(name)?.attach_with_options(interface, hook, options);
        attached.map(drop).map_err(|e| Error::NoTcx(interface.to_owned(), e.to_string()))
    }

    /// Runs a classifier once.
    pub fn test(&self, name: &str, options: TestRunOptions<'_>) -> Result<TestRunResult, Error> {
        let program = self.0.program(name).ok_or(Error::NotBuilt("a program is not in the object"))?;
        let program: &SchedClassifier = program.try_into().map_err(Error::refused("a program"))?;
        program.test_run(options).map_err(Error::refused("a test run"))
    }
}
