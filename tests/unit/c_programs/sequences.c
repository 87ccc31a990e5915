// Opens, forks, runs, cuts, reorders and closes sessions that keep states, by chance, for a sanitizer to watch.
//
// In: a bundle of one input x[batch, length, 8] beside its states, a count of steps. Out: a line: how many were good, and refused. Not
// done here: outputs (`test_c_states.py`).
#include "ingot.c"

enum { SESSIONS = 8, LENGTH_MAX = 300 };

static int call(ingot_session *session, i64 batch, i64 length, error *error) {
  static float x[3 * LENGTH_MAX * 8];
  const i64 shape[] = {batch, length, 8};
  return ingot_set_input(session, 0, x, shape, error) || ingot_run(session, 0, error);
}

static int open_one(ingot_bundle *bundle, ingot_session *like, u64 random, ingot_session **session, error *error) {
  struct ingot_options options = INGOT_OPTIONS;
  options.threads = 1 + (int)(random & 1), options.keeps_states = (random >> 6) % 4 > 0, options.max_length = (i64)(random >> 8) % 3 * 100;
  options.like = like;
  return ingot_open(bundle, &options, session, error);
}

static int use(ingot_session *session, u64 random, error *error) {
  const i64 entries[] = {(i64)(random >> 3) % 3, (i64)(random >> 5) % 4, (i64)(random >> 7) % 3};
  switch (random % 8) {
    case 0: return ingot_keep(session, (i64)(random >> 3) % 70 - 2, NULL, 0, error);
    case 1: return ingot_keep(session, -1, entries, 1 + (random >> 9) % 3, error);
    case 2: return call(session, 1 + (i64)(random >> 3) % 3, (i64)(random >> 5) % LENGTH_MAX, error);
    default: return call(session, 1 + (i64)(random >> 3) % 3, 1, error);
  }
}

int main(int count, char **arguments) {
  ingot_bundle *bundle;
  ingot_session *sessions[SESSIONS] = {0};
  error error;
  u64 state = 1;
  int steps = count > 2 ? atoi(arguments[2]) : 1000, refused = 0;
  if (ingot_load(arguments[1], NULL, &bundle, &error)) return fputs(error.what, stderr), 1;
  for (int step = 0; step < steps; step++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    u64 random = state >> 33;
    ingot_session **session = sessions + random % SESSIONS;
    random /= SESSIONS;
    if (!*session) refused += open_one(bundle, sessions[random % SESSIONS], random / SESSIONS, session, &error) != INGOT_OK;
    else if (random % 16 == 0) ingot_close(*session), *session = NULL;
    else refused += use(*session, random / 16, &error) != INGOT_OK;
  }
  for (int index = 0; index < SESSIONS; index++) ingot_close(sessions[index]);
  ingot_unload(bundle);
  printf("%d good, %d refused\n", steps - refused, refused);
  return 0;
}
