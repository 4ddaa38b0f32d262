/* In the place of the NVIDIA driver's library: one that says VERSION, and whose start ends with START. Without VERSION:
 * one that lacks all of it. */
#ifdef VERSION
int cuDriverGetVersion(int* version);
int cuInit(unsigned flags);

int cuDriverGetVersion(int* version) {
  *version = VERSION;
  return 0;
}
int cuInit(unsigned flags) {
  (void)flags;
  return START;
}
#else
int something_else(void);
int something_else(void) { return 0; }
#endif
