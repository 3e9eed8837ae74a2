//! The geometry of orbits.

use penstock_core::units::Span;
use pyo3::prelude::*;

/// A ring of satellites and where the ground stations are, as in `penstock.architecture.Orbit`.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Orbit(penstock_sim::orbit::Orbit);

#[pymethods]
impl Orbit {
    #[new]
    fn new(altitude_km: f64, satellites: u32, latitude: f64, apart: f64, processing_s: f64) -> Self {
        let processing = Span::from_secs_f64(processing_s);
        Self(penstock_sim::orbit::Orbit { altitude_km, satellites, latitude, apart, processing })
    }

    /// Of one turn around the earth.
    #[getter]
    fn period_s(&self) -> f64 {
        self.0.period_s()
    }

    /// True if it stays over one place.
    #[getter]
    fn is_fixed(&self) -> bool {
        self.0.is_fixed()
    }

    /// From one satellite to the next; infinite if it is fixed.
    #[getter]
    fn handover_s(&self) -> f64 {
        self.0.handover_s()
    }

    /// Both stations always have the serving satellite above the horizon.
    #[getter]
    fn is_seen(&self) -> bool {
        self.0.is_seen()
    }

    /// One way, `t_s` after a satellite began to serve.
    fn delay_ms(&self, t_s: f64) -> f64 {
        self.0.delay_ms(t_s)
    }
}
