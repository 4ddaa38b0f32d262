#include "tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace oasr {

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (data_ == nullptr) throw std::bad_alloc();
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(shape),
      buffer_(static_cast<std::size_t>(shape.elements()) * dtype_size(dtype)) {}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, shape);
  if (tensor.buffer_.size() > 0) std::memset(tensor.buffer_.data(), 0, tensor.buffer_.size());
  return tensor;
}

}  // namespace oasr
