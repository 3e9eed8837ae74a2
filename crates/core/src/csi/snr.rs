//! The probability that a packet is lost, from a signal-to-noise ratio or a distance.
//!
//! **802.11** (OFDM, 20 MHz): Pei and Henderson, "Validation of OFDM error rate model in ns-3", 2010, the model that
//! document 002 §4.2.3.3 refers to. The error rate p of uncoded bits follows from the constellation; that of the
//! convolutional code, of constraint length 7, from the union bound with the code's weight spectrum (Frenger et al. 1998):
//!
//! ```text
//! BPSK p = erfc(sqrt(SNR)) / 2          QPSK p = erfc(sqrt(SNR / 2)) / 2
//! 16-QAM p = 3/8 erfc(sqrt(SNR / 10))   64-QAM p = 7/24 erfc(sqrt(SNR / 42))
//! D = sqrt(4 p (1 - p))    Pe = 1/(2b) sum c_d D^d    loss = 1 - (1 - Pe)^bits
//! ```
//!
//! **802.16** (OFDM, 256 carriers): block error rates measured with a link simulator over a multipath channel (Ismail,
//! Piro, Grieco, Turletti, "An improved IEEE 802.16 WiMAX module for the ns-3 simulator", 2010), from ns-3's
//! `src/wimax/model/default-traces.h`, first row (SNR) and third row. About one value per half dB is kept; between the
//! values logarithms are interpolated, since the rates fall exponentially (`points_left_out_are_met_nearly`). A packet
//! is lost if one of its blocks is. Four of the seven profiles are included: in ns-3, the values of 16-QAM 3/4 were
//! replaced by a formula, and 64-QAM 2/3 loses half of its blocks at 66 dB.
//!
//! **Distance**: path loss of 46.6777 dB at 1 m and 30 dB per decade (ns-3's log-distance model), thermal noise of -174
//! dBm/Hz; 802.11 sends with 16.0206 dBm over 20 MHz with a noise figure of 7 dB, 802.16 with 30 dBm over 10 MHz with 5
//! dB (defaults of ns-3's models).
//!
//! DIFFERENCE: stations do not adapt their modulation to the channel. The document's link has 54 Mbit/s whatever the
//! losses, which go up to 1; with rate adaptation losses would be small. Pinned by
//! `a_station_keeps_its_modulation_whatever_the_channel`.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The radio of the document's two scenarios, each with one modulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Technology {
    /// 802.11 at 54 Mbit/s: 64-QAM, rate 3/4.
    Wifi,
    /// 802.16 with 16-QAM, rate 1/2.
    Wimax,
}

impl Technology {
    /// The probability that a packet of `size` is lost at this signal-to-noise ratio.
    pub fn loss(self, snr_db: f64, size: Bytes) -> f64 {
        match self {
            Self::Wifi => wifi_loss(Constellation::Qam64, Code::ThreeQuarters, snr_db, size),
            Self::Wimax => wimax_loss(Profile::Qam16Half, snr_db, size),
        }
    }

    /// The signal-to-noise ratio at a distance, in dB, without fading.
    pub fn snr_db(self, metres: f64) -> f64 {
        let (power_dbm, bandwidth_hz, figure_db) = match self {
            Self::Wifi => (16.0206, 20e6, 7.0),
            Self::Wimax => (30.0, 10e6, 5.0),
        };
        let path_db = 46.6777 + 30.0 * libm::log10(metres.max(1.0));
        let noise_dbm = -174.0 + 10.0 * libm::log10(bandwidth_hz) + figure_db;
        power_dbm - path_db - noise_dbm
    }
}

/// The constellation of 802.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constellation {
    /// BPSK, one bit per symbol.
    Bpsk,
    /// QPSK, two bits per symbol.
    Qpsk,
    /// 16-QAM, four bits per symbol.
    Qam16,
    /// 64-QAM, six bits per symbol.
    Qam64,
}

impl Constellation {
    /// The error rate of uncoded bits at a linear signal-to-noise ratio.
    fn bit_error_rate(self, snr: f64) -> f64 {
        let (scale, spread) = match self {
            Self::Bpsk => (1.0, 1.0),
            Self::Qpsk => (1.0, 2.0),
            Self::Qam16 => (0.75, 10.0),
            Self::Qam64 => (7.0 / 12.0, 42.0),
        };
        scale * 0.5 * libm::erfc((snr / spread).sqrt())
    }
}

/// The puncturing of the convolutional code of 802.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Rate 1/2.
    Half,
    /// Rate 2/3.
    TwoThirds,
    /// Rate 3/4.
    ThreeQuarters,
}

/// The weight spectrum c_d of the code: the number of bit errors on all paths of each distance d, from the least
/// distance on.
const HALF: [f64; 17] = [
    36.0,
    0.0,
    211.0,
    0.0,
    1404.0,
    0.0,
    11_633.0,
    0.0,
    77_433.0,
    0.0,
    502_690.0,
    0.0,
    3_322_763.0,
    0.0,
    21_292_910.0,
    0.0,
    134_365_911.0,
];
const TWO_THIRDS: [f64; 10] =
    [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0, 8_784_123.0];
const THREE_QUARTERS: [f64; 10] =
    [42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0, 75_152_755.0, 428_005_675.0];

impl Code {
    /// The error rate of decoded bits, by the union bound, from the error rate `p` of uncoded bits.
    fn decoded(self, p: f64) -> f64 {
        let (b, least, weights): (f64, i32, &[f64]) = match self {
            Self::Half => (1.0, 10, &HALF),
            Self::TwoThirds => (2.0, 6, &TWO_THIRDS),
            Self::ThreeQuarters => (3.0, 5, &THREE_QUARTERS),
        };
        let d = (4.0 * p * (1.0 - p)).sqrt();
        let mut power = libm::pow(d, f64::from(least));
        let mut sum = 0.0;
        for weight in weights {
            sum += weight * power;
            power *= d;
        }
        (sum / (2.0 * b)).min(1.0)
    }
}

/// The probability that a packet of `size` is lost over 802.11.
pub fn wifi_loss(constellation: Constellation, code: Code, snr_db: f64, size: Bytes) -> f64 {
    let snr = libm::pow(10.0, snr_db / 10.0);
    let decoded = code.decoded(constellation.bit_error_rate(snr));
    1.0 - libm::pow(1.0 - decoded, 8.0 * size.get() as f64)
}

/// The burst profiles of 802.16: modulation and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// BPSK, rate 1/2: blocks of 12 B.
    BpskHalf,
    /// QPSK, rate 1/2: blocks of 24 B.
    QpskHalf,
    /// QPSK, rate 3/4: blocks of 36 B.
    QpskThreeQuarters,
    /// 16-QAM, rate 1/2: blocks of 48 B.
    Qam16Half,
}

type Points = &'static [(f64, f64)];

/// Points of signal-to-noise ratio in dB and block error rate.
const BPSK_HALF: Points =
    &[(0.3, 1.0), (0.6, 0.9324), (0.8, 0.6273), (1.0, 0.29), (1.2, 0.0995), (1.5, 0.0164), (2.0, 0.0011), (2.5, 1e-4)];
const QPSK_HALF: Points = &[
    (2.0, 0.9515),
    (2.5, 0.6401),
    (3.0, 0.2511),
    (3.5, 0.0689),
    (4.0, 0.0177),
    (4.5, 0.0046),
    (5.0, 0.0014),
    (5.7, 1e-4),
];
const QPSK_THREE_QUARTERS: Points = &[
    (3.0, 0.9913),
    (3.5, 0.9252),
    (4.0, 0.7686),
    (4.5, 0.5471),
    (5.0, 0.3473),
    (5.5, 0.2091),
    (6.0, 0.1257),
    (6.5, 0.0693),
    (7.0, 0.0407),
    (7.5, 0.0226),
    (8.0, 0.0121),
    (8.5, 0.0064),
    (9.0, 0.0041),
    (9.5, 0.0024),
    (10.0, 0.0012),
    (11.0, 4e-4),
    (11.6, 1e-4),
];
const QAM16_HALF: Points = &[
    (10.0, 0.7946),
    (10.5, 0.6922),
    (11.0, 0.5676),
    (11.5, 0.4479),
    (12.0, 0.3412),
    (12.5, 0.2510),
    (13.0, 0.1734),
    (13.5, 0.1133),
    (14.0, 0.0796),
    (14.5, 0.0491),
    (15.0, 0.0301),
    (15.5, 0.0229),
    (16.0, 0.0125),
    (16.5, 0.0091),
    (17.1, 0.0054),
    (17.5, 0.0032),
    (18.0, 0.0019),
    (18.5, 0.0009),
    (19.0, 6e-4),
    (20.0, 4e-4),
    (21.0, 1e-4),
];

/// The probability that a packet of `size` is lost over 802.16.
pub fn wimax_loss(profile: Profile, snr_db: f64, size: Bytes) -> f64 {
    let (block, points) = match profile {
        Profile::BpskHalf => (12, BPSK_HALF),
        Profile::QpskHalf => (24, QPSK_HALF),
        Profile::QpskThreeQuarters => (36, QPSK_THREE_QUARTERS),
        Profile::Qam16Half => (48, QAM16_HALF),
    };
    let blocks = size.get().div_ceil(block) as f64;
    1.0 - libm::pow(1.0 - interpolated(points, snr_db), blocks)
}

/// Interpolates between the points. Below the first point the rate is that of the first; beyond the last the line is
/// extended.
fn interpolated(points: Points, snr_db: f64) -> f64 {
    let beyond = points.iter().position(|(at, _)| *at > snr_db).unwrap_or(points.len() - 1);
    if beyond == 0 {
        return points[0].1;
    }
    let ((x0, y0), (x1, y1)) = (points[beyond - 1], points[beyond]);
    let (low, high) = (libm::log(y0), libm::log(y1));
    libm::exp(low + (high - low) * (snr_db - x0) / (x1 - x0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of ns-3's own test of its model: frames of 2000 B, success to within 0.001.
    #[test]
    fn the_model_of_802_11_is_that_of_ns_3() {
        use {Code::*, Constellation::*};
        for (constellation, code, snr_db, success) in [
            (Bpsk, Half, 3.0, 0.020),
            (Bpsk, Half, 4.0, 0.885),
            (Bpsk, ThreeQuarters, 6.0, 0.097),
            (Bpsk, ThreeQuarters, 7.0, 0.918),
            (Qpsk, Half, 7.0, 0.881),
            (Qpsk, ThreeQuarters, 9.5, 0.623),
            (Qam16, Half, 13.0, 0.495),
            (Qam16, Half, 14.0, 0.974),
            (Qam16, ThreeQuarters, 16.5, 0.818),
            (Qam64, TwoThirds, 21.0, 0.649),
            (Qam64, TwoThirds, 22.0, 0.983),
            (Qam64, ThreeQuarters, 22.0, 0.410),
            (Qam64, ThreeQuarters, 23.0, 0.958),
        ] {
            let ours = 1.0 - wifi_loss(constellation, code, snr_db, Bytes::new(2000));
            assert!((ours - success).abs() < 0.001, "{constellation:?} {code:?} at {snr_db} dB: {ours}, not {success}");
        }
    }

    #[test]
    fn blocks_of_802_16_are_lost_as_in_the_table() {
        let block = |profile, size| move |snr_db| wimax_loss(profile, snr_db, Bytes::new(size));
        assert!((block(Profile::QpskHalf, 24)(3.0) - 0.2511).abs() < 1e-12);
        assert!((block(Profile::Qam16Half, 48)(14.0) - 0.0796).abs() < 1e-12);
        // Two blocks: 1 - (1 - 0.0796)^2 = 0.15286.
        assert!((block(Profile::Qam16Half, 49)(14.0) - 0.152_864).abs() < 1e-6);
        // Between 3.0 and 3.5 dB: sqrt(0.2511 * 0.0689) = 0.13153.
        assert!((block(Profile::QpskHalf, 24)(3.25) - 0.131_533).abs() < 1e-5);
        assert_eq!(block(Profile::BpskHalf, 12)(-5.0), 1.0);
        assert!(block(Profile::QpskThreeQuarters, 36)(20.0) < 1e-6, "the line goes on");
    }

    /// Values of the same source between the points kept here. The source counts errors in 10,000 blocks, so that 0.006
    /// is accurate to within a quarter.
    #[test]
    fn points_left_out_are_met_nearly() {
        for (profile, block, snr_db, rate) in [
            (Profile::BpskHalf, 12, 0.9, 0.4540),
            (Profile::BpskHalf, 12, 1.4, 0.0335),
            (Profile::QpskHalf, 24, 3.2, 0.1483),
            (Profile::QpskHalf, 24, 4.2, 0.0092),
            (Profile::QpskThreeQuarters, 36, 5.2, 0.2936),
            (Profile::QpskThreeQuarters, 36, 6.2, 0.0994),
            (Profile::QpskThreeQuarters, 36, 7.3, 0.0268),
            (Profile::Qam16Half, 48, 12.2, 0.2986),
            (Profile::Qam16Half, 48, 13.8, 0.0941),
            (Profile::Qam16Half, 48, 15.2, 0.0269),
            (Profile::Qam16Half, 48, 16.8, 0.0060),
        ] {
            let ours = wimax_loss(profile, snr_db, Bytes::new(block));
            assert!((ours / rate - 1.0).abs() < 0.2, "{profile:?} at {snr_db} dB: {ours}, not {rate}");
        }
    }

    #[test]
    fn power_falls_by_30_db_per_decade() {
        // 16.0206 - 46.6777 - (-174 + 73.0103 + 7) = 63.3326 dB at 1 m.
        assert!((Technology::Wifi.snr_db(1.0) - 63.3326).abs() < 1e-4);
        assert!((Technology::Wifi.snr_db(10.0) - 33.3326).abs() < 1e-4);
        // 30 - 46.6777 - (-174 + 70 + 5) - 60 = 22.3223 dB at 100 m.
        assert!((Technology::Wimax.snr_db(100.0) - 22.3223).abs() < 1e-4);
    }

    #[test]
    fn loss_falls_with_the_signal() {
        for technology in [Technology::Wifi, Technology::Wimax] {
            let losses: Vec<f64> =
                (0..60).map(|half_db| technology.loss(f64::from(half_db) / 2.0, Bytes::new(1700))).collect();
            assert!(losses.is_sorted_by(|a, b| a >= b), "{technology:?}: {losses:?}");
            assert!(losses[0] > 0.999 && losses[59] < 0.001, "{technology:?}: {losses:?}");
        }
    }

    /// 12 dB: a station with rate adaptation would use QPSK 1/2 and lose no packet.
    #[test]
    fn a_station_keeps_its_modulation_whatever_the_channel() {
        let size = Bytes::new(1700);
        let slower = wifi_loss(Constellation::Qpsk, Code::Half, 12.0, size);
        assert!(slower < 1e-9, "{slower}");
        assert!(Technology::Wifi.loss(12.0, size) > 0.999_999);
        assert!(wimax_loss(Profile::QpskHalf, 9.0, size) < 0.01);
        assert!(Technology::Wimax.loss(9.0, size) > 0.999_999);
    }
}
