package headwater.store;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * What checkpoints are written through where {@code abfss://} is an emulator's, without TLS.
 *
 * <p>Hadoop's classes for a {@code FileContext} are tied to a scheme each, and that of {@code abfss} insists on TLS. This one takes
 * the class of {@code fs.abfss.impl}, as everything else does.
 */
public class PlainAzure extends DelegateToFileSystem {
  private static final String SCHEME = "abfss";

  /** As Hadoop makes it, by the name of its class. */
  public PlainAzure(URI uri, Configuration configuration) throws IOException, URISyntaxException {
    super(uri, client(configuration), configuration, SCHEME, false);
  }

  private static FileSystem client(Configuration configuration) throws IOException {
    return ReflectionUtils.newInstance(FileSystem.getFileSystemClass(SCHEME, configuration), configuration);
  }

  @Override
  public int getUriDefaultPort() {
    return -1;
  }
}
