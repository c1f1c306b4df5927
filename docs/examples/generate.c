/* A C program that embeds libtrine: loads a model, continues a text, prints it as it comes.
 *
 *   cc generate.c $(pkg-config --cflags --libs trine) -o generate
 *   ./generate model.gguf "Once upon a time" */
#include <stdio.h>
#include <string.h>
#include <trine/trine.h>

static int32_t on_text(void* user, const char* text, size_t bytes) {
  (void)user;
  fwrite(text, 1, bytes, stdout);
  fflush(stdout);
  return 0; /* another value would end the generation */
}

static int fail(const char* what, const trine_failure* why) {
  fprintf(stderr, "%s: %s (status %d)\n", what, why->message, (int)why->status);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODEL.gguf PROMPT\n", argv[0]);
    return 2;
  }
  trine_failure why = {.struct_size = sizeof(why)};

  trine_engine_options engine_options = {.struct_size = sizeof(engine_options), .model = argv[1]};
  trine_engine* engine = NULL;
  if (trine_engine_open(&engine_options, &engine, &why) != 0) return fail("open", &why);

  trine_sampler_options sampler;
  trine_sampler_options_init(&sampler, sizeof(sampler));
  sampler.seed = 42; /* the same seed gives the same text, on every machine */
  trine_session_options session_options = {.struct_size = sizeof(session_options),
                                           .sampler = &sampler};
  trine_session* session = NULL;
  int status = trine_session_open(engine, &session_options, &session, &why);
  if (status == 0) {
    status = trine_session_append_text(session, argv[2], strlen(argv[2]), 0, &why);
  }
  trine_generate_result result = {.struct_size = sizeof(result)};
  if (status == 0) {
    const trine_generate_options options = {
        .struct_size = sizeof(options), .max_tokens = 64, .on_text = on_text};
    fputs(argv[2], stdout);
    status = trine_generate(session, &options, &result, &why);
    putchar('\n');
  }
  if (status != 0) {
    fail("generate", &why);
  } else {
    fprintf(stderr, "%lld tokens in %.0f ms\n", (long long)result.generated_tokens,
            result.generate_ms);
  }
  trine_session_close(session);
  trine_engine_close(engine);
  return status == 0 ? 0 : 1;
}
