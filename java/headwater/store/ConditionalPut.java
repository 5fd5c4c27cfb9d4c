package headwater.store;

import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * One object, written only where its key has none: a put with {@code If-None-Match: *}, decided by the store.
 *
 * <p>The client repeats a put whose answer was lost, and the store then refuses the second one because of the first. Every
 * put therefore carries a mark of its own, and after a refusal the mark of the object there says whose it is. Equal content
 * would not: two drivers write the same bytes when they commit the same batch.
 *
 * <p>A store may also refuse because another put of the key is under way, which may then fail (S3's 409), and the client hands
 * that on. Where nothing is there after a refusal, the put is tried again with the same mark; so the content is kept until then.
 */
final class ConditionalPut {
  private static final String CREATE_ONLY = "fs.option.create.conditional.overwrite";
  private static final String MARK = "headwater-put";
  private static final int ATTEMPTS = 6;
  private static final long FIRST_PAUSE_MILLIS = 100;

  private final FileSystem store;
  private final Path path;
  private final byte[] mark = UUID.randomUUID().toString().getBytes(StandardCharsets.US_ASCII);
  private final ByteArrayOutputStream content = new ByteArrayOutputStream();
  private final FSDataOutputStream stream = new FSDataOutputStream(content, null);

  /**
   * Begin the put; the store sees nothing of it before {@link #finish}.
   *
   * @throws IOException where the file system has no conditional puts, or they were turned off.
   */
  ConditionalPut(FileSystem store, Path path) throws IOException {
    this.store = store;
    this.path = path;
    if (!store.hasPathCapability(path, CREATE_ONLY)) {
      throw new IOException("No conditional puts on " + path + ": two writers could overwrite each other");
    }
  }

  /** Where the content goes. */
  FSDataOutputStream stream() {
    return stream;
  }

  /**
   * Put the object.
   *
   * @return false where the key has an object of another writer.
   * @throws IOException where the put failed, and no object is there.
   */
  boolean finish() throws IOException {
    stream.flush();
    for (int attempt = 1; ; attempt++) {
      try {
        put();
        return true;
      } catch (IOException failure) {
        Boolean ours = isOurs(failure);
        if (ours != null) {
          return ours;
        }
        if (attempt == ATTEMPTS) {
          throw failure;
        }
        pause(FIRST_PAUSE_MILLIS << attempt - 1);
      }
    }
  }

  private void put() throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
    builder.overwrite(false);
    builder.must(CREATE_ONLY, true);
    builder.must("fs.s3a.create.header." + MARK, new String(mark, StandardCharsets.US_ASCII));
    FSDataOutputStream object = builder.build();
    try {
      content.writeTo(object);
    } catch (IOException failure) {
      object.abort();
      throw failure;
    }
    object.close();
  }

  /** Whether the object that is there is this one; null where there is none. */
  private Boolean isOurs(IOException failure) throws IOException {
    try {
      return Arrays.equals(mark, store.getXAttr(path, "header." + MARK));
    } catch (FileNotFoundException absent) {
      return null;
    } catch (IOException unknown) {
      failure.addSuppressed(unknown);
      throw failure;
    }
  }

  private static void pause(long millis) throws IOException {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted before another attempt of a put");
    }
  }
}
