/* What the accelerator computes. There is no libc; 0 says that all went well. */
#include <stdint.h>

int accelerator_relu(const float *x, float *result, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        result[i] = x[i] < 0.0f ? 0.0f : x[i];
    return 0;
}

int accelerator_add_relu(const float *x, const float *y, float *result, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        float sum = x[i] + y[i];
        result[i] = sum < 0.0f ? 0.0f : sum;
    }
    return 0;
}
