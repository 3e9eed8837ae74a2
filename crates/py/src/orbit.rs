//! The geometry of satellite orbits for Python.

use penstock_core::units::Span;
use pyo3::prelude::*;

/// A ring of satellites and the positions of the ground stations, as in `penstock.architecture.Orbit`.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Orbit(penstock_sim::orbit::Orbit);

#[pymethods]
impl Orbit {
    #[new]
    fn new(altitude_km: f64, satellites: u32, latitude: f64, apart: f64, processing_s: f64) -> Self {
        let processing = Span::from_secs_f64(processing_s);
        Self(penstock_sim::orbit::Orbit { altitude_km, satellites, latitude, apart, processing })
    }

    /// Duration of one turn around the earth in seconds.
    #[getter]
    fn period_s(&self) -> f64 {
        self.0.period_s()
    }

    /// True if the satellite stays over one place.
    #[getter]
    fn is_fixed(&self) -> bool {
        self.0.is_fixed()
    }

    /// Time in seconds from one satellite to the next; infinite if the satellites are geostationary.
    #[getter]
    fn handover_s(&self) -> f64 {
        self.0.handover_s()
    }

    /// True if the serving satellite is always above the horizon of both stations.
    #[getter]
    fn is_seen(&self) -> bool {
        self.0.is_seen()
    }

    /// One-way delay in milliseconds, `t_s` seconds after a satellite began to serve.
    fn delay_ms(&self, t_s: f64) -> f64 {
        self.0.delay_ms(t_s)
    }
}
