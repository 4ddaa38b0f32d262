/* In the place of the NVIDIA driver's library: one that says VERSION (and ends that with VERSION_STATUS), and whose start
 * ends with START. Without VERSION: one that lacks all of it. */
#ifdef VERSION
#ifndef VERSION_STATUS
#define VERSION_STATUS 0
#endif
int cuDriverGetVersion(int* version);
int cuInit(unsigned flags);

int cuDriverGetVersion(int* version) {
  *version = VERSION;
  return VERSION_STATUS;
}
int cuInit(unsigned flags) {
  (void)flags;
  return START;
}
#else
int something_else(void);
int something_else(void) { return 0; }
#endif
