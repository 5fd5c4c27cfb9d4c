package headwater.store;

import java.io.FileNotFoundException;
import java.io.IOException;
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
 */
final class ConditionalPut {
  private static final String CREATE_ONLY = "fs.option.create.conditional.overwrite";
  private static final String MARK = "headwater-put";

  private final FileSystem store;
  private final Path path;
  private final byte[] mark = UUID.randomUUID().toString().getBytes(StandardCharsets.US_ASCII);
  private final FSDataOutputStream stream;

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
    FSDataOutputStreamBuilder<?, ?> builder = store.createFile(path);
    builder.overwrite(false);
    builder.must(CREATE_ONLY, true);
    builder.must("fs.s3a.create.header." + MARK, new String(mark, StandardCharsets.US_ASCII));
    stream = builder.build();
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
    try {
      stream.close();
      return true;
    } catch (IOException failure) {
      try {
        return Arrays.equals(mark, store.getXAttr(path, "header." + MARK));
      } catch (FileNotFoundException absent) {
        throw failure;
      } catch (IOException unknown) {
        failure.addSuppressed(unknown);
        throw failure;
      }
    }
  }

  /** Drop what was written; the store has never seen it. */
  void cancel() {
    stream.abort();
  }
}
