//! The distinct values of a matrix with few of them: `gpu-kernels/src/convert/dictionary.rs`.

use spm_formats::Scalar;
use spm_formats::kernel::PlanError;
use spm_gpu_kernels::convert::{FindValues, NO_VALUE, VALUE_TABLE};
use spm_gpu_kernels::spmv::MOST_VALUES;

use crate::launch::stride_over;
use crate::matrix::DeviceCsr;
use crate::memory::DeviceBuffer;
use crate::plan::DeviceReal;
use crate::stream::Stream;

/// Values that are looked at before the others: several times what the table holds.
const FEW_VALUES: usize = 4 * VALUE_TABLE as usize;

/// Distinct values, numbered by a byte; 0 is always among them, as number 0.
#[derive(Debug)]
pub(crate) struct DeviceDictionary<T> {
    /// The bits of the values, at the places where a search finds them.
    pub(crate) table: DeviceBuffer<u64>,
    /// The number of each element of the table.
    pub(crate) codes: DeviceBuffer<u32>,
    /// The value of each number.
    pub(crate) values: DeviceBuffer<T>,
}

impl<T: DeviceReal> DeviceDictionary<T> {
    /// Reads the values once at most; `None` where there are more than a byte numbers. General values are given
    /// up after the first few.
    pub(crate) fn of(a: &DeviceCsr<T>) -> Result<Option<Self>, PlanError> {
        if a.entries() == 0 {
            return Ok(None);
        }
        let device = a.device();
        let stream = Stream::of_planning(device)?;
        let mut words = vec![NO_VALUE; VALUE_TABLE as usize];
        // Behind the table: whether there are too many.
        words.push(0);
        let mut table = DeviceBuffer::from_slice(device, &words)?;
        // Where there are too many, all threads at once wait for each other at the full table: a few values tell before.
        let mut counts = vec![a.entries().min(FEW_VALUES), a.entries()];
        counts.dedup();
        let most = device.info().resident_threads();
        for entries in counts {
            let launch = stride_over(entries.min(most));
            let (values, table) = (a.values.ptr(), table.ptr_mut());
            let args = FindValues { entries: entries as u32, values, table };
            // SAFETY: that many values, a table and a word behind it.
            unsafe { device.launch::<FindValues<T>>(launch, &stream, args)? };
        }
        let mut words = table.to_vec()?;
        let too_many = words.pop() != Some(0);
        let zero = <T as Scalar>::ZERO.to_word();
        let mut distinct: Vec<u64> =
            words.iter().copied().filter(|&word| word != NO_VALUE && word != zero).collect();
        if too_many || distinct.len() >= MOST_VALUES as usize {
            return Ok(None);
        }
        // Where they are in the table depends on the order in which threads came.
        distinct.sort_unstable();
        // Free elements of the table have any number; 0 that of 0.
        let code = |&word: &u64| match word {
            NO_VALUE => 0,
            word => distinct.binary_search(&word).map_or(0, |at| at as u32 + 1),
        };
        let codes: Vec<u32> = words.iter().map(code).collect();
        distinct.insert(0, zero);
        let mut values = vec![<T as Scalar>::ZERO; MOST_VALUES as usize];
        for (value, &word) in values.iter_mut().zip(&distinct) {
            *value = T::from_word(word);
        }
        Ok(Some(Self {
            table,
            codes: DeviceBuffer::from_slice(device, &codes)?,
            values: DeviceBuffer::from_slice(device, &values)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use spm_formats::Csr;

    use super::*;
    use crate::device::Device;

    /// How many values have a number, and the numbers of the table: `None` where there are too many values.
    fn numbered(values: Vec<f64>) -> Option<Vec<f64>> {
        let row_ptr = vec![0, values.len() as u32];
        let columns = (0..values.len() as u32).collect();
        let a = Csr::new((1, values.len()), row_ptr, columns, values).unwrap();
        let device = Device::emulated(Default::default());
        let dictionary =
            DeviceDictionary::of(&DeviceCsr::new(&device, a.view()).unwrap()).unwrap()?;
        // Every element of the table has the number of its value.
        let numbers = dictionary.values.to_vec().unwrap();
        let (table, codes) =
            (dictionary.table.to_vec().unwrap(), dictionary.codes.to_vec().unwrap());
        for (&word, &code) in table.iter().zip(&codes).take(VALUE_TABLE as usize) {
            assert!(word == NO_VALUE || numbers[code as usize].to_bits() == word);
        }
        Some(numbers)
    }

    #[test]
    fn a_byte_numbers_255_values_and_0() {
        let values = |count: usize| (0..4 * count).map(|k| 1.5 + (k % count) as f64).collect();
        let numbers = numbered(values(255)).unwrap();
        assert_eq!(numbers[0], 0.0);
        assert_eq!(numbers[1..], (0..255).map(|k| 1.5 + k as f64).collect::<Vec<_>>());
        assert_eq!(numbered(values(256)), None);
        assert_eq!(numbered(values(3000)), None);
        let zeros = numbered(vec![0.0, -0.0, f64::NAN, 0.0]).unwrap();
        assert_eq!(zeros.iter().filter(|value| value.to_bits() != 0).count(), 2);
        // The bits that mark a free element.
        assert_eq!(numbered(vec![1.0, f64::from_bits(NO_VALUE)]), None);
        assert_eq!(numbered(Vec::new()), None);
    }
}
